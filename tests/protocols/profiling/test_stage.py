"""The stage of profiles: what parties and outsiders read, and what is refused."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from support.lies import tell

from clustering_protocols import engine, simulation
from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyContext
from clustering_protocols.engine import signatures, stages
from clustering_protocols.engine.session_state import PendingResults
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.profiles import SHARES, Profile
from clustering_protocols.numerics.round_numbers import round_up
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.shared_stages.profiles import messages, roles
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout

X: Any = load_iris().data
NAMES = ("sepal length", "sepal width", "petal length", "petal width")
SCHEMA = numeric_schema(NAMES, X.min(axis=0), X.max(axis=0))


@pytest.fixture(autouse=True)
def _opened_before(
    earlier: Callable[[], AbstractContextManager[None]],
) -> Iterator[None]:
    """Let sessions tell everybody as an earlier release opened them: they continue so."""
    with earlier():
        yield


def begun(
    params: Any, layout: Layout, **more: Any
) -> tuple[simulation.Session, simulation.Split]:
    columns = np.array_split(np.arange(4), layout.n_column_groups)
    dictionary = [
        SCHEMA.model_copy(update={"fields": tuple(SCHEMA.fields[i] for i in part)})
        for part in columns
    ]
    parts = simulation.split(X, layout, 0, NAMES, dictionary=dictionary)
    given: dict[str, Any] = {"release": Release(profiles="everybody"), **more}
    return (
        simulation.Session(
            params, layout, parts.data, 0, dictionary=dictionary, **given
        ),
        parts,
    )


def pooled(parts: simulation.Split, outcomes: Mapping[str, Outcome]) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=list(NAMES))
    for row in range(parts.layout.n_row_groups):
        first = parts.layout.row_group(row)[0]
        frame.loc[parts.held[first], "label"] = outcomes[first].labels
    return frame[frame["label"] >= 0]


@pytest.mark.parametrize(
    ("kind", "checked", "why"),
    [
        (messages.TakeLabels, True, "the run that the rule"),
        (signatures.Conclude, True, "the run that the rule"),
        (signatures.Conclude, False, "whose labels it sent"),
    ],
)
def test_the_chosen_run_is_that_of_the_terms_and_of_the_labels(
    kind: Any, why: str, monkeypatch: pytest.MonkeyPatch, *, checked: bool
) -> None:
    if not checked:
        monkeypatch.setattr(signatures, "check_chosen_run", lambda *_: None)
    runs = Evaluation(n_clusters=(2, 3), choose="davies_bouldin")
    session, _ = begun(
        LosslessFederated(n_clusters=3), Layout.lattice(3), evaluation=runs
    )
    session.play_until(kind)
    tell(session, lambda task: {"chosen": 1 - task.chosen})
    with pytest.raises(ProtocolFailed, match=why):
        session.answer("r1c1")


@pytest.mark.parametrize("layout", [Layout.lattice(2), Layout.lattice(1, 2)])
def test_a_party_profiles_its_own_rows_if_a_sum_reveals_another(layout: Layout) -> None:
    session, parts = begun(DataCollaboration(n_clusters=3), layout)
    simulated = session.run_to_end()
    for slot, outcome in simulated.outcomes.items():
        (profile,) = outcome.profiles
        assert profile.own
        own = pd.DataFrame(parts.data[slot]._X, columns=list(parts.data[slot].columns))  # type: ignore[attr-defined]  # a matrix in memory
        expected = own.groupby(outcome.labels).mean()
        for field in profile.fields:
            if not profile.others:
                np.testing.assert_allclose(field.mean, expected[field.name], rtol=1e-9)
    assert session.profiles == []


def test_a_lattice_publishes_rounded_profiles_of_other_columns() -> None:
    session, _ = begun(DataCollaboration(n_clusters=3), Layout.lattice(3, 2))
    outcomes = session.run_to_end().outcomes
    for slot, outcome in outcomes.items():
        own, other = outcome.profiles
        column = session.session.layout.slot(slot).column
        assert (own.column, own.rounded) == (column, False)
        assert (other.column, other.rounded) == (1 - column, True)
    told = [Profile.model_validate(each) for each in session.profiles]
    assert [each.column for each in told] == [0, 1]
    assert all(each.rounded for each in told)


def test_members_alone_read_what_is_released_to_members() -> None:
    session, _ = begun(
        DataCollaboration(n_clusters=3),
        Layout.lattice(3, 2),
        release=Release(profiles="members"),
    )
    outcomes = session.run_to_end().outcomes
    assert all(len(outcome.profiles) == 1 for outcome in outcomes.values())
    assert session.profiles == []
    sent = b"".join(each.payload for each in session.sent)
    assert b"difference" not in sent


@pytest.mark.unused_seam("_check_new_session")
def test_profiles_need_a_dictionary_and_all_parties() -> None:
    source = {
        name: MatrixSource(X[i::3], columns=NAMES)
        for i, name in enumerate(Layout.lattice(3).names)
    }
    release = Release(profiles="members")
    with pytest.raises(InvalidParameters, match="dictionary"):
        simulation.run(
            DataCollaboration(n_clusters=3),
            Layout.lattice(3),
            source,
            0,
            release=release,
        )
    four = Layout.lattice(4)
    with pytest.raises(InvalidParameters, match="to the end"):
        begun(LosslessFederated(n_clusters=3, quorum=3), four)


@pytest.mark.threat(107)
def test_published_centroids_are_as_rounded_as_profiles() -> None:
    session, parts = begun(LosslessFederated(n_clusters=3), Layout.lattice(3))
    run = session.run_to_end()
    summary: Any = run.summary
    labels = pooled(parts, run.outcomes).groupby("label").size()
    least = np.maximum(1 / SHARES, 5 / labels.to_numpy())[:, None] * X.std(axis=0)
    units = summary.centroids / round_up(least)
    np.testing.assert_allclose(units, np.rint(units), atol=1e-6)
    assert not np.allclose(summary.centroids, X[parts.held["r1c1"]].mean(axis=0))


@pytest.mark.threat(109)
@pytest.mark.parametrize(
    ("told", "said"),
    [(1, "fewer clusters than there are"), (151, "than there are rows")],
)
def test_a_false_number_of_clusters_in_a_profile_is_refused(
    monkeypatch: pytest.MonkeyPatch, told: int, said: str
) -> None:
    honest = roles.ProfilesAnalyst._ask_sum

    def lying(role: Any, session: Any, state: messages.AddingProfile, sums: Any) -> Any:
        lie = state.model_copy(update={"n_clusters": told})
        return honest(role, session, lie, sums)

    monkeypatch.setattr(roles.ProfilesAnalyst, "_ask_sum", lying)
    session, _ = begun(DataCollaboration(n_clusters=3), Layout.lattice(3))
    with pytest.raises(ProtocolFailed, match=said):
        session.run_to_end()


@pytest.mark.threat(109)
def test_a_leader_cannot_tell_another_profile_than_was_added_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = roles._ask_to_read_profiles

    def invented(session: Any, state: Any, contributions: Any) -> Any:
        profile = messages.parse_profile(contributions["r1c1"].text)
        bent = profile.model_copy(update={"n_rows": (1, *profile.n_rows[1:])})
        lie = messages.ProfileTold(text=messages.encode_profiles([bent]))
        return honest(session, state, {**contributions, "r1c1": lie})

    monkeypatch.setattr(roles, "_ask_to_read_profiles", invented)
    session, _ = begun(DataCollaboration(n_clusters=3), Layout.lattice(3))
    with pytest.raises(ProtocolFailed, match="profile differs"):
        session.run_to_end()


@pytest.mark.threat(109)
def test_labels_that_were_profiled_are_those_that_come_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, _ = begun(DataCollaboration(n_clusters=3), Layout.lattice(3))
    session.play_until(messages.ReadProfiles)

    def swapped(kept: PendingResults) -> dict[str, str]:
        found = dict(kept.runs[0]["records"])
        return {**found, "r1c1": found["r2c1"], "r2c1": found["r1c1"]}

    monkeypatch.setattr(PendingResults, "_names", property(swapped))
    with pytest.raises(ProtocolFailed, match="does not belong to these labels"):
        session.run_to_end()


@pytest.fixture
def singled_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    honest = stages.build_outcome_reader

    def lying(lasts: Any) -> Any:
        labelled = honest(lasts)

        def of(context: PartyContext, task: Any, data: Any) -> Outcome:
            outcome = labelled(context, task, data)
            labels = outcome.labels.copy()
            if context.slot.name == "r1c1":
                labels[0] = 3
            return replace(outcome, labels=labels)

        return of

    monkeypatch.setattr(stages, "build_outcome_reader", lying)
    engine.load_session.cache_clear()
    yield
    engine.load_session.cache_clear()


@pytest.mark.threat(107)
@pytest.mark.usefixtures("singled_out")
def test_a_singleton_cluster_is_merged_in_the_profile() -> None:
    session, parts = begun(DataCollaboration(n_clusters=3), Layout.lattice(3))
    session.play_until(messages.TellProfile)
    session.play_round()
    profile = messages.parse_profile(
        session.recall("r3c1", messages.ProfileMemory).exact
    )
    row = parts.data["r1c1"].take(np.array([0]))[0]  # type: ignore[attr-defined]  # a matrix in memory
    assert 3 in profile.others
    assert len(profile.others) > 1
    assert profile.n_rows[-1] > 10
    rest = [1 + label for label in profile.clusters]  # no line without that row's
    assert len(rest) + len(profile.others) == 4
    for field in profile.fields:
        assert field.mean[-1] != pytest.approx(row[NAMES.index(field.name)], abs=1e-6)
