"""New rows are labelled by the names of their columns, also without a dictionary."""

from __future__ import annotations

import numpy as np
import pandas as pd
from support.terminal import Terminal, accepting, read

from party_sdk.party.party_session import PartySession

CREATE = (
    "session",
    "create",
    "Wards",
    "--protocol",
    "dc",
    "--param",
    "n_clusters=3",
    "--param",
    "dimensions=all_but_one",
)


def test_columns_are_found_by_their_names_without_a_dictionary(
    online: Terminal,
) -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[50, 1, 900], [70, 9, 100], [20, 5, 500]])
    X = centers[np.arange(60) % 3] + rng.normal(size=(60, 3))
    frame = pd.DataFrame(X, columns=["age", "crp", "count"])
    frame.insert(0, "patient", [f"P{number}" for number in range(60)])
    first, other = online.folder / "first.csv", online.folder / "other.csv"
    frame.to_csv(first, index=False)
    # another order, a column more, and words in it
    frame.iloc[::-1].assign(note="none")[
        ["note", "count", "patient", "age", "crp"]
    ].to_csv(other, index=False)
    document = online.json(*CREATE, "--param", "predictor=true")
    [invitation] = document["invitations"].values()
    given = f"@{online.file('invitation', invitation)}"
    accept = accepting(online, invitation)
    own, session = ("--id-column", "patient"), document["id"]
    labels, again = online.folder / "labels.csv", online.folder / "again.csv"
    online("party", "run", given, "--data", first, *own, *accept, "--labels", labels)
    told = ("party", "predict", session, "r1c1", *own, "--labels", again, "--data")
    online(*told, other)
    expected = {row["patient"]: row["label"] for row in read(labels)}
    assert {row["patient"]: row["label"] for row in read(again)} == expected
    assert len(set(expected.values())) == 3
    kept = PartySession(online.folder / "home", session, "r1c1").load_identity()
    assert kept.columns == ("age", "crp", "count")
    assert "crp" not in kept.terms, "names of columns stay at home"
    frame.drop(columns="crp").to_csv(other, index=False)
    assert "'crp'" in online(*told, other, "--force", expect=5).stderr
