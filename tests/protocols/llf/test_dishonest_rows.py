"""A party of `llf` with modified software sends false sums to honest parties.

It sends any share it likes, reads every total as all parties do, and takes its own off.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    ProtocolFailed,
)
from clustering_protocols.contract import RowHistory
from clustering_protocols.contract.row_history import most_derivable_rows
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.llf import (
    LosslessFederated as Llf,
    rows_party,
    rows_round,
)
from clustering_protocols.protocols.llf.maths import split_sums
from clustering_protocols.protocols.llf.rows_round import RowsRound
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import unaudited
from tests.protocols.llf.reading_off import Cells

LAYOUT = Layout.lattice(3)
LIAR, VICTIM, SISTER = "r2c1", "r1c1", "r3c1"
SETS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}


def cells_of(Z: FloatArray, around: Sequence[FloatArray]) -> Cells:
    return [cdist(Z, V).argmin(axis=1) for V in around]


class Keen:
    """Turns the border between two clusters a little in every round.

    Rows between two such borders are what two totals differ by. With a session it knows
    what the others are about to send, which no real party does; without, it takes their
    last sums for the next. If it is careful, its totals pass the comparisons: it keeps the
    sum of all rows; a cost that never rises, by lengthening both centroids as it turns; and
    counts, of which it leaves every cluster its own.
    """

    def __init__(
        self, *, careful: bool = False, seed: int = 0, session: Session | None = None
    ) -> None:
        self.careful, self.session = careful, session
        self.answered: dict[str, list[FloatArray]] = {}
        self.scale: Any = None
        self._rng = np.random.default_rng(seed)
        self._others: Any = None
        self._sent: Any = None
        self._direction: FloatArray | None = None
        self._angle = 0.04 if careful else 0.2  # radians in a round

    def share(self, here: Any, V: FloatArray, number: int, own: Any) -> Any:
        """Return sums (k, F) and counts (k,) in whole units, instead of own ones."""
        unit = split_sums(here.encoding.unit, len(V))[0]
        sums, counts = own[0] / unit, own[1]
        others = self._expected(here, V)
        if number > 2 and others is not None:
            wanted = self._wanted(V, others[0] + sums, others[1] + counts)
            sums, counts = wanted[0] - others[0], np.rint(wanted[1] - others[1])
        self._sent = sums, counts
        most = split_sums(here.encoding.bound, len(V))[0] * unit
        return np.clip(np.rint(sums * unit), -most, most), counts

    def read(self, number: int, sums: FloatArray, counts: FloatArray) -> None:
        del number
        if self._sent is not None:
            self._others = sums - self._sent[0], counts - self._sent[1]

    def _expected(self, here: Any, V: FloatArray) -> Any:
        if self.session is None:
            return self._others
        sums, counts = np.zeros_like(V), np.zeros(len(V))
        for slot, data in self.session.data.items():
            if slot != here.context.slot.name:
                Z = here.scale(matrix(data))
                labels = cdist(Z, V).argmin(axis=1)
                np.add.at(sums, labels, Z)
                counts += np.bincount(labels, minlength=len(V))
        return sums, counts

    def _wanted(self, V: FloatArray, sums: FloatArray, counts: FloatArray) -> Any:
        """Return the total that turns the border between clusters 0 and 1."""
        sums, counts = np.array(sums), np.array(counts)
        pair, n = sums[:2].sum(axis=0), counts[:2].sum()
        if not self.careful:
            pair = pair + 0.05 * n * np.sign(V[0])
        middle, apart = pair / n, (V[0] - V[1]) / 2
        length = float(np.linalg.norm(apart)) or 1.0
        to = self._turned(apart / length)
        length *= 1.0 / np.cos(self._angle) + 1e-6 if self.careful else 1.0
        length = min(max(length, 0.3), 1.9)
        n_first = counts[0] if self.careful else np.rint(n / 2)
        n_second = n - n_first
        first = middle + to * length * 2.0 * n_second / n
        sums[0], counts[:2] = n_first * first, (n_first, n_second)
        sums[1] = pair - sums[0]
        return sums, counts

    def _turned(self, u: FloatArray) -> FloatArray:
        if self._direction is None or self._rng.random() < 0.05:
            self._direction = self._rng.normal(size=u.size)
        w = self._direction - (self._direction @ u) * u
        w /= np.linalg.norm(w) + 1e-12
        turned: FloatArray = np.cos(self._angle) * u + np.sin(self._angle) * w
        return turned


def solved_rows(session: Session, liar: Keen, slots: Sequence[str]) -> int:
    """Return how many rows follow from sums over some parties' rows, by pseudoinverse."""
    n_answered = min(len(liar.answered.get(slot, [])) for slot in slots)
    Z = np.vstack([liar.scale(matrix(session.data[slot])) for slot in slots])
    rows = [np.zeros(len(Z))]
    for labels in cells_of(Z, liar.answered[slots[0]][:n_answered]):
        rows += [labels == cluster for cluster in range(labels.max() + 1)]
    M = np.unique(np.array(rows, dtype=np.float64), axis=0)
    leverage = np.einsum("ij,ji->i", np.linalg.pinv(M), M)
    return int(np.count_nonzero(leverage > 1 - 1e-7))


def session(
    name: str, k: int = 3, seed: int = 0, most: int = 100, **more: Any
) -> Session:
    """Return a session that starts far from where it ends, so that a liar has time."""
    parts = simulation.split(SETS[name]().data, LAYOUT, seed).data
    params = Llf(n_clusters=k, max_iter=most, init="random_party")
    return Session(params, LAYOUT, parts, seed, **more)


@contextmanager
def unsteady() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowsRound, "_check_against_earlier", lambda *_: None)
        patch.setattr(rows_round, "check_own_share", lambda *_: None)
        yield


@contextmanager
def changed(liar: Keen, slot: str = LIAR) -> Iterator[None]:
    """Let one party send what a liar says, and skip every check of its own."""
    sums, moved = rows_party.local_sums, RowsRound._move_centroids
    answered, check = rows_round.audit_sums, RowsRound._check_against_earlier

    def local_sums(here: RowsRound, data: Any, V: FloatArray) -> Any:
        own = sums(here, data, V)
        liar.scale = here.scale
        liar.answered.setdefault(here.context.slot.name, []).append(V)
        number = here.context.announced_rounds.get("update", 0)
        return liar.share(here, V, number, own) if is_liar(here) else own

    def follow(self: RowsRound, known: Any, total: Any, members: list[str]) -> Any:
        if is_liar(self):
            sums = split_sums(total, self.params.n_clusters)
            liar.read(known.number + 1, *sums)
        return moved(self, known, total, members)

    def is_liar(here: RowsRound) -> bool:
        return here.context.slot.name == slot

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_party, "local_sums", local_sums)
        patch.setattr(RowsRound, "_move_centroids", follow)
        patch.setattr(
            rows_round,
            "audit_sums",
            lambda here, data, *a: (
                rows_round.latest_history(here.context, data.n_rows)
                if is_liar(here)
                else answered(here, data, *a)
            ),
        )
        patch.setattr(
            RowsRound,
            "_check_against_earlier",
            lambda self, *a: None if is_liar(self) else check(self, *a),
        )
        yield


def ended(s: Session) -> CoterieError | None:
    try:
        s.run_to_end()
    except CoterieError as error:
        return error
    return None


@pytest.mark.threat(150)
@pytest.mark.parametrize("name", list(SETS))
@pytest.mark.quick(1)
def test_a_party_that_moves_centroids_freely_is_refused(name: str) -> None:
    liar = Keen()
    s = session(name)
    with changed(liar):
        refused = ended(s)
    assert isinstance(refused, ProtocolFailed)
    assert len(liar.answered[LIAR]) <= 4
    assert solved_rows(s, liar, [VICTIM, SISTER]) <= 1  # as of an honest session
    # without the comparisons and the audit it reads rows: the control
    s, liar = session(name, most=40, choices=unaudited(LAYOUT)), Keen()
    with unsteady(), changed(liar):
        assert ended(s) is None
    assert solved_rows(s, liar, [VICTIM, SISTER]) >= 5


@pytest.mark.threat(150)
@pytest.mark.parametrize(("name", "k"), [("iris", 2), ("wine", 2), ("iris", 3)])
def test_an_informed_liar_reads_no_more_than_the_audit_limit(name: str, k: int) -> None:
    """Its totals keep the sum of rows and lower the cost, because it foresees others' sums.

    This is the strongest attack: no real party knows these. The audit of others stops it.
    """
    for seed in range(3):
        s = session(name, k, seed)
        liar = Keen(careful=True, seed=seed, session=s)
        with changed(liar):
            refused = ended(s)
        for slot in (VICTIM, SISTER):
            n_rows = s.data[slot].n_rows
            assert solved_rows(s, liar, [slot]) <= most_derivable_rows(0.25, n_rows)
        assert isinstance(refused, GuardRefused | ProtocolFailed | None)


@pytest.mark.threat(151)
@pytest.mark.parametrize(("name", "share"), [("iris", 0.1), ("wine", 0.1)])
def test_two_invented_parties_read_no_more_than_the_audit_limit(
    name: str, share: float
) -> None:
    """They know all sums except the victim's, and all other checks are switched off."""
    s = session(name, choices={VICTIM: {"sums_limit": share}})
    liar = Keen(session=s)
    with unsteady(), changed(liar):
        refused = ended(s)
    n_rows = s.data[VICTIM].n_rows
    assert isinstance(refused, GuardRefused)
    assert "'sums_limit'" in str(refused)
    assert solved_rows(s, liar, [VICTIM]) <= most_derivable_rows(share, n_rows)
    # without the limit it reads more: the control
    s = session(name, most=40, choices=unaudited(LAYOUT))
    liar = Keen(session=s)
    with unsteady(), changed(liar):
        ended(s)
    assert solved_rows(s, liar, [VICTIM]) > most_derivable_rows(share, n_rows)


def test_the_refusal_names_the_updates_that_fit() -> None:
    given = {slot: {"sums_limit": 1.0} for slot in LAYOUT.names}
    given[VICTIM] = {"sums_limit": 0.05}
    parts = simulation.split(load_wine().data, LAYOUT, 3).data
    refused = ended(Session(Llf(n_clusters=8), LAYOUT, parts, 3, choices=given))
    assert isinstance(refused, GuardRefused)
    fits = int(str(refused).split("max_iter ")[1].split()[0])
    params = Llf(n_clusters=8, max_iter=fits)
    assert ended(Session(params, LAYOUT, parts, 3, choices=given)) is None
    over = Llf(n_clusters=8, max_iter=fits + 1)
    at_the_end = ended(Session(over, LAYOUT, parts, 3, choices=given))
    assert isinstance(at_the_end, GuardRefused)
    assert f"max_iter {fits} " in str(at_the_end)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("n_rows", [50, 150, 1000])
def test_so_many_updates_fit_in_any_case_and_one_more_may_not(
    n_rows: int, k: int
) -> None:
    fit = rows_round.updates_that_fit(n_rows, k)
    most = most_derivable_rows(0.25, n_rows)
    history, numbers = RowHistory.empty(n_rows), []
    rng = np.random.default_rng(0)
    for _ in range(fit + 2):
        history = history.after_partition(rng.permutation(np.arange(n_rows) % k))
        numbers.append(history.n_sums)
    assert fit == 0 or numbers[-2] <= most
    assert fit >= 0
    assert numbers[-1] > most


@pytest.mark.parametrize("share", ["all", -0.1, 1.5, None])
def test_a_limit_that_is_no_share_is_refused(share: object) -> None:
    refused = ended(session("iris", choices={VICTIM: {"sums_limit": share}}))
    assert isinstance(refused, GuardRefused)
    assert "from 0 to 1" in str(refused)


def test_all_sums_of_a_session_are_in_the_history() -> None:
    """These are sums of every update and run, and by final label."""
    parts = simulation.split(load_iris().data, LAYOUT, 1).data
    runs = Evaluation(n_clusters=(2, 3))
    s = Session(
        Llf(n_clusters=3),
        LAYOUT,
        parts,
        1,
        evaluation=runs,
        choices=unaudited(LAYOUT),
    )
    around: list[FloatArray] = []
    labels = rows_round._labels_for_history

    def seen(here: RowsRound, data: Any, V: FloatArray) -> Any:
        around.extend([V] * (here.context.slot.name == VICTIM))
        return labels(here, data, V)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_round, "_labels_for_history", seen)
        run = s.run_to_end()
    n_updates = sum(figures.n_iter or 0 for figures in run.figures)
    assert len(around) == n_updates + 2  # the leader says stop with one more
    memory = s.memories[VICTIM].scope_to_run(1)
    found = memory.get(RowHistory)
    assert found is not None
    assert len(found.labels) == len(around) + 2
    X = np.vstack([matrix(parts[slot]) for slot in LAYOUT.names])
    Z = (matrix(parts[VICTIM]) - X.mean(axis=0)) / X.std(axis=0)
    cells: Cells = cells_of(Z, around)
    mine = found.labels[:, found.of_row]
    for labelled in cells:
        assert (mine == labelled).all(axis=1).any()


def test_the_last_sums_of_degrees_are_in_the_history() -> None:
    fuzzy = Llf(n_clusters=2, algorithm="fuzzy_cmeans", small_cohorts="allow")
    parts = simulation.split(load_iris().data, LAYOUT, 1).data
    s = Session(fuzzy, LAYOUT, parts, 1)
    s.run_to_end()
    found = s.recall(VICTIM, RowHistory)
    assert len(found.labels) == 1
