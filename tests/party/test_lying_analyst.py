"""An analyst that lies in earnest: over the service, to parties of the SDK as it is.

Whatever it does, every party ends with a named error, nobody has labels, and what was
uploaded is what an honest session uploads until there. A party that has stopped sends
nothing when it is run again, and says why.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.in_process import in_process
from support.tables import within

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    AgreementMismatch,
    CoterieError,
    DeadlinePassed,
    EnvelopeRefused,
    KeyNotAuthentic,
    PartyStopped,
    ProtocolFailed,
    TaskRefused,
)
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import StopReason
from tests.party import liars
from tests.party.liars import Liar
from tests.party.sitting import SESSION, Sitting, sit

X = np.random.default_rng(2).normal(0.0, 3.0, size=(60, 3))
ROWS = simulation.split(X, Layout.lattice(3), seed=1)
FOUR = simulation.split(X, Layout.lattice(4), seed=1)
COLUMNS = simulation.split(X, Layout.lattice(1, 3), seed=1)
VICTIM = ROWS.layout.names[-1]
HOSPITAL = COLUMNS.layout.names[0]
LLF = LosslessFederated(n_clusters=3, scaling="none", init="bounds", max_iter=2)
Case = tuple[Params, simulation.Split]
CASES: dict[str, Case] = {
    "dummy": (Dummy(n_clusters=3), ROWS),
    "dc": (DataCollaboration(n_clusters=3), ROWS),
    "llf, rows": (LLF, ROWS),
    "llf, four": (LLF, FOUR),
    "llf, columns": (LosslessFederated(n_clusters=2, max_iter=2), COLUMNS),
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sitting]:
    """Return what comes of a case where nobody lies; each is run once."""
    known: dict[str, Sitting] = {}

    def run(case: str) -> Sitting:
        if case not in known:
            known[case] = _sitting(case, tmp_path_factory.mktemp("honest"))
        return known[case]

    return run


def _sitting(case: str, folder: Path) -> Sitting:
    with in_process(folder / "api", driven=True) as api:
        params, parts = CASES[case]
        said = within(-20.0, 20.0, parts.data, parts.layout)
        return sit(api, params, parts, folder / "home", dictionary=said)


def lied_to(case: str, liar: Liar, folder: Path) -> tuple[Sitting, liars.Lies]:
    """Return what comes of a case with a liar, and what it lied about."""
    with pytest.MonkeyPatch.context() as patch:  # honest ones may come after it
        lies = liar(patch)
        sitting = _sitting(case, folder)
    assert lies, "nobody has lied"
    return sitting, lies


def nobody_has_labels(sitting: Sitting) -> None:
    for slot, ending in sitting.endings.items():
        assert ending.labels is None, slot
        assert ending.error is not None


def stopped_for_good(sitting: Sitting, *why: type[CoterieError]) -> list[str]:
    """Check that parties stay stopped, each for the reason that it gave; return which."""
    found = []
    for slot, ending in sitting.endings.items():
        if isinstance(ending.error, DeadlinePassed):
            continue  # it waited for one that had stopped
        assert isinstance(ending.error, why), (slot, ending.error)
        assert ending.n_sent_again == 0, slot
        assert ending.error.detail in ending.again.detail, "it says why"
        found.append(slot)
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.quick(2)
def test_where_nobody_lies_everybody_has_labels(
    honest: Callable[[str], Sitting], case: str
) -> None:
    sitting = honest(case)
    for slot, ending in sitting.endings.items():
        assert ending.error is None
        assert len(ending.labels or ()) == CASES[case][1].data[slot].n_rows


TO_EVERYBODY: dict[str, tuple[str, Liar, type[CoterieError]]] = {
    "close after the first update": ("llf, rows", liars.closes_at_once, ProtocolFailed),
    "wider powers of two": ("dc", liars.widens_powers, ProtocolFailed),
}


@pytest.mark.threat(81)
@pytest.mark.parametrize("lie", TO_EVERYBODY)
@pytest.mark.quick(2)
def test_a_lie_to_everybody_is_answered_by_nobody(
    honest: Callable[[str], Sitting], lie: str, tmp_path: Path
) -> None:
    """All that the analyst has is what it has of an honest session until then."""
    case, liar, why = TO_EVERYBODY[lie]
    sitting, _ = lied_to(case, liar, tmp_path)
    nobody_has_labels(sitting)
    assert len(stopped_for_good(sitting, why)) == 3
    for ending in sitting.endings.values():
        assert isinstance(ending.again, TaskRefused)
        assert "has stopped" in ending.again.detail
    assert sitting.uploads == honest(case).before(*sitting.open)
    assert sitting.uploads < honest(case).uploads


def test_the_first_to_refuse_ends_the_session_of_all(tmp_path: Path) -> None:
    """Who waits for it reads that it refused, and not what it found."""
    with pytest.MonkeyPatch.context() as patch:
        liars.widens_powers(patch)
        with in_process(tmp_path / "api", driven=True) as api:
            params, parts = CASES["dc"]
            said = within(-20.0, 20.0, parts.data, parts.layout)
            sitting = sit(
                *(api, params, parts, tmp_path / "home"),
                dictionary=said,
                hides_stops=False,
            )
            stored = str(api.stored()[0]["members"])
    nobody_has_labels(sitting)
    errors = [ending.error for ending in sitting.endings.values()]
    own = [each for each in errors if isinstance(each, ProtocolFailed)]
    others = [each for each in errors if isinstance(each, PartyStopped)]
    assert own, "somebody looked"
    assert len(own) + len(others) == 3
    for each in others:
        assert "stopped for good (refused)" in each.detail
    assert StopReason.REFUSED.value in stored
    for each in own:
        assert each.detail not in stored


@pytest.mark.threat(81)
def test_an_update_without_one_party_stops_the_others(
    honest: Callable[[str], Sitting], tmp_path: Path
) -> None:
    case, liar = "llf, four", liars.drops_one_dimension
    sitting, _ = lied_to(case, liar, tmp_path)
    nobody_has_labels(sitting)
    asked = list(FOUR.layout.names[:-1])
    assert sorted(stopped_for_good(sitting, ProtocolFailed)) == asked
    assert sitting.uploads == honest(case).before(*sitting.open)


@pytest.mark.threat(34)
def test_one_invitation_impersonates_nobody_whom_the_terms_name(tmp_path: Path) -> None:
    """Of `omnifc` the puppets would get all shares of the victim, and open its rows."""
    keys = simulation.derive_entropies(7, SESSION, ROWS.layout.names)
    secret = roster_entries.derive_session_secret(keys[simulation.COORDINATOR], SESSION)
    with pytest.MonkeyPatch.context() as patch:
        lies = liars.plays_all_but(VICTIM, secret)(patch)
        with in_process(tmp_path / "api", driven=True) as api:
            params = OmniFC(n_clusters=2)
            sitting = sit(api, params, ROWS, tmp_path / "home", named=True)
    assert lies
    nobody_has_labels(sitting)
    assert len(stopped_for_good(sitting, KeyNotAuthentic, AgreementMismatch)) == 3
    victim = sitting.endings[VICTIM].error
    assert isinstance(victim, KeyNotAuthentic)
    assert "that the terms do not expect" in victim.detail
    assert sitting.uploads == set()


REFUSALS = (TaskRefused, ProtocolFailed, EnvelopeRefused)


@pytest.mark.threat(81)
@pytest.mark.parametrize("begin", [1, 2, 5])
def test_two_camps_that_are_told_two_stories_end_without_labels(
    honest: Callable[[str], Sitting], begin: int, tmp_path: Path
) -> None:
    """The analyst takes every signature for good, and only the parties look."""
    liar = liars.two_camps(VICTIM, begin)
    sitting, _ = lied_to("dummy", liar, tmp_path)
    nobody_has_labels(sitting)
    assert stopped_for_good(sitting, *REFUSALS)
    assert sitting.uploads <= honest("dummy").uploads
    if begin == 1:
        assert {upload.kind for upload in sitting.uploads} == {"signed"}


@pytest.mark.threat(46)
def test_other_labels_for_one_party_spoil_every_later_total(
    honest: Callable[[str], Sitting], tmp_path: Path
) -> None:
    """The analyst never reads a sum again, and nobody takes the labels that it makes."""
    liar = liars.other_labels(HOSPITAL, shift=1)
    sitting, readable = lied_to("llf, columns", liar, tmp_path)
    assert len(readable) == 3, "two of distances, and the scatter"
    assert not any(readable)
    nobody_has_labels(sitting)
    assert len(stopped_for_good(sitting, ProtocolFailed)) == 3
    kinds = {upload.kind for upload in honest("llf, columns").uploads}
    assert {upload.kind for upload in sitting.uploads} <= kinds


def test_totals_are_read_where_all_hospitals_are_told_the_same(tmp_path: Path) -> None:
    """The same analyst with a story that is true."""
    liar = liars.other_labels(HOSPITAL, shift=0)
    sitting, readable = lied_to("llf, columns", liar, tmp_path)
    assert len(readable) == 3
    assert all(readable)
    assert all(ending.labels for ending in sitting.endings.values())
