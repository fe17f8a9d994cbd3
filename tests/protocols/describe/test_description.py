"""What a description says, against pandas on pooled rows; what it releases, and to whom."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.examples import dealt
from support.verdicts import Refused

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.numerics.profiles import SHARES, Profile
from clustering_protocols.protocols.describe import Describe, reference
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.session_terms import build_request, draw_up_terms
from clustering_protocols.shared_stages.profiles.messages import (
    ProfileMemory,
    parse_profile,
)
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import (
    check_refused,
    completed,
    house_in,
    numbers,
    play,
)

[EXAMPLE] = reference.examples()
NUMBERS = ("age", "crp")


@pytest.fixture(scope="module")
def session() -> simulation.Session:
    data = dealt(EXAMPLE, 0).data
    played = simulation.Session(
        EXAMPLE.params, EXAMPLE.layout, data, 0, **EXAMPLE.sections
    )
    played.run_to_end()
    return played


@pytest.fixture(scope="module")
def pooled(session: simulation.Session) -> pd.DataFrame:
    """Return the rows of all parties, as pandas has them."""
    names = reference.SCHEMA.names
    tables = [
        np.concatenate(list(source.batches())) for source in session.data.values()
    ]
    return pd.DataFrame(np.concatenate(tables), columns=list(names))


def told(session: simulation.Session, slot: str, *, rounded: bool) -> Profile:
    memory = session.memories[slot].get(ProfileMemory)
    assert memory is not None
    return parse_profile(memory.rounded if rounded else memory.exact)


def test_a_party_reads_what_pandas_says_of_the_pooled_rows(
    session: simulation.Session, pooled: pd.DataFrame
) -> None:
    for slot in session.session.slots:
        profile = told(session, slot, rounded=False)
        assert profile.is_description
        assert profile.n_rows == (len(pooled),)
        for field in profile.fields:
            values = pooled[field.name]
            assert field.n_rows == (values.notna().sum(),)
            assert profile.count_missing(field) == values.isna().sum()
            if field.name in NUMBERS:
                assert field.mean[0] == pytest.approx(values.mean(), rel=1e-9)
                assert field.spread[0] == pytest.approx(values.std(ddof=0), rel=1e-9)
            else:
                shares = values.value_counts(normalize=True).sort_index()
                assert field.shares[0] == pytest.approx(tuple(shares), rel=1e-12)


def test_outside_everything_is_rounded(
    session: simulation.Session, pooled: pd.DataFrame
) -> None:
    [published] = session.profiles
    rounded = Profile.model_validate(published)
    assert rounded.rounded
    assert rounded == told(session, "r2c1", rounded=True)
    for field in rounded.fields:
        for count in field.n_rows:
            assert round(SHARES * (count or 0) / len(pooled), 9).is_integer()


def terms(params: Params, layout: Layout, **sections: Any) -> None:
    sections = {"seed": 0, "dictionary": (reference.SCHEMA,), **sections}
    draw_up_terms("s", build_request(params, layout, **sections))


ROWS = Layout.lattice(3)


@pytest.mark.parametrize(
    ("params", "layout", "sections", "why"),
    [
        (Describe(), Layout.lattice(2), {}, "needs 3 parties"),
        (
            Describe(),
            Layout.lattice(3, 2),
            {"dictionary": (reference.SCHEMA, numbers(["x"]))},
            "needs split rows",
        ),
        (Describe(), ROWS, {"dictionary": None}, "need a dictionary"),
        (
            Describe(),
            ROWS,
            {"preparation": (Preparation(missing="drop"),)},
            "imputes no values",
        ),
        (
            LosslessFederated(n_clusters=2),
            ROWS,
            {"preparation": (Preparation(missing="leave"),)},
            "only a description can leave values missing",
        ),
    ],
)
def test_terms_that_describe_nothing_are_refused(
    params: Params, layout: Layout, sections: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidParameters, match=why):
        terms(params, layout, **sections)


def ward(rng: np.random.Generator, n: int = 30) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "born": rng.choice(np.arange(1930, 2000), n, replace=False),
            "height": rng.normal(170, 9, n).round(0),
        }
    )


def test_one_cluster_of_all_rows_is_no_description(session: simulation.Session) -> None:
    """Labels that were asked for are written, and the line is called cluster 0."""
    table = np.random.default_rng(0).normal(size=(90, 2))
    schema = numbers(["a", "b"], kind="number")
    clustered = simulation.Session(
        LosslessFederated(n_clusters=1, max_iter=3),
        ROWS,
        simulation.split(table, ROWS, 0, dictionary=(schema,)).data,
        0,
        dictionary=(schema,),
        release=Release(profiles="everybody"),
    )
    clustered.run_to_end()
    profiles = [told(clustered, "r1c1", rounded=each) for each in (False, True)]
    assert [len(profile.n_rows) for profile in profiles] == [1, 1]
    assert not any(profile.is_description for profile in profiles)
    assert profiles[0].table.columns == ("variable", "cluster 0")
    described = told(session, "r1c1", rounded=True)
    assert described.table.columns == ("variable", "all rows")


@pytest.mark.threat(196)
@pytest.mark.parametrize("then", [Describe(), LosslessFederated(n_clusters=1)])
def test_a_code_of_no_value_takes_nobody_out_of_a_description(
    tmp_path: Path, then: Params
) -> None:
    """Describe, declare one value to be none, sum again, and subtract."""
    rng = np.random.default_rng(0)
    tables = [ward(rng) for _ in range(3)]
    names, person = list(tables[0].columns), tables[1].iloc[17]
    codes = {"born": (str(int(person["born"])),)}
    with house_in(tmp_path) as house:
        first = play(
            house, "one", Describe(), ROWS, tables, dictionary=[numbers(names, 0, 3000)]
        )
        completed(first)
        second = play(
            house,
            "two",
            then,
            ROWS,
            tables,
            dictionary=[numbers(names, 0, 3000, codes=codes)],
            **(
                {}
                if then == Describe()
                else {"preparation": [Preparation(missing="drop")]}
            ),
        )
    nearly = "Sums over nearly the same rows were sent before"
    check_refused(second, Refused(Problem.GUARD_REFUSED, nearly))
