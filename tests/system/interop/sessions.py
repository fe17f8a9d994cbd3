"""Sessions in which parties of clients/typescript meet those of the package."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from support.analyst_process import Crowd

from tests.system.interop.client_process import read_labels, start_party, write_rows


def run_beside(
    crowd: Crowd, folder: Path, foreign: Sequence[str]
) -> dict[str, list[int]]:
    """Return everybody's labels; parties in ``foreign`` slots are those in TypeScript.

    All draw from the entropy of the simulation: see :meth:`Crowd.expected`.
    """
    started = {slot: start_with_entropy(crowd, folder, slot) for slot in foreign}
    if others := [slot for slot in crowd.layout.names if slot not in foreign]:
        crowd.start(*others)
    found = {slot: finish(each, folder / slot) for slot, each in started.items()}
    return found | (crowd.labels() if others else {})


def start_with_entropy(
    crowd: Crowd, folder: Path, slot: str, *options: str, at: str = ""
) -> subprocess.Popen[str]:
    """Start a party in TypeScript with the data and the entropy of a slot.

    at: where it finds the analyst, if not at its own address.
    """
    own, data = folder / slot, crowd.data[slot]
    own.mkdir(exist_ok=True)
    rows = np.vstack(list(data.batches())).tolist()
    names = write_rows(own / "rows.csv", data.columns, rows, data.ids)
    (own / "entropy").write_text(crowd.keys[slot].hex(), encoding="utf-8")
    more = [*options, "--entropy-file", str(own / "entropy")]
    for name in names:
        more += ["--id-column", name]
    risks = crowd.session.status().risks
    url = crowd.analyst.url
    invitation = crowd.invitations[slot].replace(url, at or url)
    return start_party(own, invitation, risks, *more)


def finish(process: subprocess.Popen[str], folder: Path) -> list[int]:
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return read_labels(folder)
