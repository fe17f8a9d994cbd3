"""What a party uploads under a budget: neighbouring tables, told apart within it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from scipy import stats
from support import drawn_terms
from support.tables import cut_columns, within

from clustering_protocols import simulation
from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.contract import PartyContext, PrivacySpending
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.pqmds import (
    Privacy,
    ProductQuantisation,
    maths,
    messages,
    party,
    release,
)
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.budget import noise_scale
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.simulation import Session
from clustering_protocols.terms.preparation import Preparation, Ranges, Treatment
from clustering_protocols.terms.schema import Field, Schema, numeric_schema
from clustering_protocols.terms.terms import Layout, Terms

N_ROWS, TRIALS = 6, 1000
WIDEST = 3.0
MIXED = np.array([[0.0], [0.3], [-0.4], [0.2], [-0.1], [0.4]])
CONSTANT = np.zeros((N_ROWS, 1))


def noisy(epsilon: float, **changes: Any) -> ProductQuantisation:
    privacy = Privacy(mechanism="laplace", epsilon=epsilon)
    given = {"n_clusters": 1, "sub_dim": 1, "codebook_size": 8, "privacy": privacy}
    return ProductQuantisation.model_validate(given | changes)


def with_first(X: FloatArray, value: float) -> FloatArray:
    return np.vstack([[[value]], X[1:]])


def standing(params: ProductQuantisation) -> PartyContext:
    data = {"r1c1": MatrixSource(MIXED)}
    order = RowOrder(order=np.arange(N_ROWS))
    layout = Layout.lattice(1, 1)
    said = within(-WIDEST, WIDEST, data, layout)
    session = Session(params, layout, data, seed=1, session="s", dictionary=said)
    memory = Memory().remember([order])
    return replace(session.context("r1c1"), stage="upload", round=3, memory=memory)


class Seen(NamedTuple):
    """An upload, and the two that an analyst who knows all but the noise expects."""

    codes: FloatArray
    expected: list[FloatArray]


def nearness(seen: Seen) -> float:
    """The logarithm of the likelihood ratio, but for its scale."""
    far = [float(np.abs(seen.codes - codes).sum()) for codes in seen.expected]
    return round(far[0] - far[1], 9)


def equality(seen: Seen) -> float:
    same = [float((seen.codes == codes).mean()) for codes in seen.expected]
    return same[1] - same[0]


def on_lattice(seen: Seen) -> float:
    """Whether codes lie on the steps of the range of the one table or of the other."""

    def off(codes: FloatArray) -> float:
        step = (codes.max() - codes.min()) / 1024
        if step == 0:
            return 1.0
        places = (seen.codes - codes.min()) / step
        return float(np.abs(places - np.rint(places)).max() > 1e-3)

    first, second = seen.expected
    return off(first) - off(second)


def largest(seen: Seen) -> float:
    return float(np.abs(seen.codes).max())


def different(seen: Seen) -> float:
    return float(len(np.unique(seen.codes)))


STATISTICS = (nearness, equality, on_lattice, largest, different)


def told_apart(first: FloatArray, second: FloatArray, epsilon: float) -> float:
    """Return the ε, at least, of the uploads of two tables.

    Codebooks are the same in all trials; the noise is another under each agreement.
    """
    view = standing(noisy(epsilon))
    expected = [party._encode_rows(view, X)[0] for X in (first, second)]
    seen: list[list[Seen]] = []
    for which, X in enumerate((first, second)):
        data = MatrixSource(X)
        trials = range(which, 2 * TRIALS, 2)
        seen.append([upload(view, data, number, expected) for number in trials])
    return least_epsilon(*seen, STATISTICS)


def upload(
    view: PartyContext,
    data: MatrixSource,
    number: int,
    expected: list[maths.EncodedRows],
) -> Seen:
    plan = replace(view.session, agreement_digest=f"{number:064x}")
    again = replace(view, session=plan)
    given = party.Encoder().reply(again, messages.Encode(), data)
    codes = messages.RowCodes.narrow(given.contribution).codes
    return Seen(codes, [each.codes for each in expected])


NEIGHBOURS = {
    "from one end to the other": (with_first(MIXED, -3.0), with_first(MIXED, 3.0)),
    "the largest of all": (with_first(MIXED, 0.0), with_first(MIXED, 2.5)),
    "alone in another cell": (CONSTANT, with_first(CONSTANT, 3.0)),
    "far outside the range": (with_first(MIXED, 0.0), with_first(MIXED, 1e12)),
}


def once(encoding: Callable[..., Any]) -> Callable[..., Any]:
    """Return an encoding that makes the codebooks of a table once, not in every trial."""
    known: dict[bytes, Any] = {}

    def encoded(params: Any, ranges: Any, X: FloatArray, *others: Any) -> Any:
        if X.tobytes() not in known:
            known[X.tobytes()] = encoding(params, ranges, X, *others)
        return known[X.tobytes()]

    return encoded


def measured(
    monkeypatch: pytest.MonkeyPatch,
    tables: str,
    *,
    encoding: Callable[..., Any] = release.encode,
    scale: Callable[..., float] = noise_scale,
) -> float:
    monkeypatch.setattr(release, "encode", once(encoding))
    monkeypatch.setattr(release, "noise_scale", cache(scale))
    return told_apart(*NEIGHBOURS[tables], epsilon=1.0)


@pytest.mark.parametrize("tables", NEIGHBOURS)
@pytest.mark.quick(1)
def test_neighbouring_tables_differ_within_the_privacy_budget(
    tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measured(monkeypatch, tables) <= 1.0


def own_codebooks(
    params: Any, _: Any, X: FloatArray, stream: Any, units: Any
) -> maths.EncodedRows:
    """As without noise: scale and codebooks come from the rows."""
    del units
    Z = maths.scale_rows(params, X)
    return maths.encode(params, Z, Z, stream)


def own_steps(
    params: Any, *others: Any, encode: Any = release.encode
) -> maths.EncodedRows:
    """Steps of the range of the codes that are in use; a constant column has none."""
    made: maths.EncodedRows = encode(params, *others)
    ends = [(column.min(), column.max() + 1e-9) for column in made.codes.T]
    return replace(made, bounds=np.array(ends))


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "less noise": (
        "from one end to the other",
        {"scale": lambda *given: noise_scale(*given) / 4},
    ),
    "codebooks of the rows": ("the largest of all", {"encoding": own_codebooks}),
    "steps of the rows": ("the largest of all", {"encoding": own_steps}),
    "a constant column": ("alone in another cell", {"encoding": own_steps}),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.quick(1)
def test_a_broken_budget_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: by each of the ways in which a budget was broken."""
    tables, spoilt = BROKEN[what]
    assert measured(monkeypatch, tables, **spoilt) > 1.0


# Beside the codes


def test_nothing_else_that_is_uploaded_depends_on_the_values() -> None:
    layout = Layout.lattice(1, 2)
    sent = []
    for value in (-3.0, 1e9):
        X = np.random.default_rng(0).normal(size=(20, 4))
        X[0] = value
        data = cut_columns(X, layout)
        said = within(-WIDEST, WIDEST, data, layout)
        running = Session(noisy(4.0, sub_dim=2), layout, data, seed=5, dictionary=said)
        running.run_to_end()
        sent.append([(m.sender, m.payload) for m in running.received_messages])
    changed = []
    for (slot, first), (_, second) in zip(*sent, strict=True):
        this, other = packets.parse(first), packets.parse(second)
        assert len(first) == len(second), slot
        same = this.arrays.keys() == other.arrays.keys() and all(
            np.array_equal(array, other.arrays[name])
            for name, array in this.arrays.items()
        )
        if not same or this.header.record != other.header.record:
            changed.append(this.header.record["kind"])
    assert changed == ["codes", "codes", "signed", "signed"]


def test_one_row_moves_its_own_codes_alone() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 7))
    params = noisy(1.0, sub_dim=3, codebook_size=16)
    ranges = Ranges(np.full(7, -3.0), np.full(7, 3.0))
    stream = standing(noisy(1.0)).lasting_stream  # of one column: sub_dim 1
    before = release.encode(params, ranges, X, stream("codebooks"))
    for value in (-3.0, 3.0, 1e300, -1e300):
        moved = X.copy()
        moved[5] = value
        after = release.encode(params, ranges, moved, stream("codebooks"))
        others = np.arange(40) != 5
        assert np.array_equal(after.codes[others], before.codes[others])
        assert np.array_equal(after.bounds, before.bounds)
        assert np.array_equal(after.sizes, before.sizes)
        assert (after.codes >= after.bounds[:, 0]).all()
        assert (after.codes <= after.bounds[:, 1]).all()


# What is declared, and what it costs


def drawn(schema: Schema, *treated: Treatment) -> Terms:
    preparation = (Preparation(fields=treated),) if treated else None
    prepared = {"dictionary": (schema,), "preparation": preparation}
    return drawn_terms.drawn(noisy(1.0), Layout.lattice(1, 1), **prepared)


def test_a_range_of_one_value_is_none() -> None:
    with pytest.raises(InvalidParameters, match="leave 'dose' out"):
        drawn(numeric_schema(["age", "dose"], [0.0, 1.0], [9.0, 1.0]))


WARD = Field(name="ward", type="string", categories=("a", "b", "c"))
MIXTURE = Schema(fields=(*numeric_schema(["age"], 0.0, 9.0).fields, WARD))


def test_noise_allows_dropped_rows_but_no_imputation() -> None:
    assert drawn(MIXTURE, Treatment(name="age", missing="drop"))
    with pytest.raises(InvalidParameters, match="missing values of 'age' are imputed"):
        drawn(MIXTURE, Treatment(name="age", missing="mean"))


def test_a_row_of_prepared_columns_moves_its_own_codes_alone() -> None:
    """Ranges and units of the columns follow from the terms, whatever the rows."""
    X = np.column_stack([np.linspace(0, 9, 40), np.arange(40) % 3])
    data = {"r1c1": MatrixSource(X, MIXTURE.names, gaps=True)}
    session = Session(
        noisy(1.0, sub_dim=2),
        Layout.lattice(1, 1),
        data,
        seed=1,
        dictionary=[MIXTURE],
        preparation=[Preparation(fields=(Treatment(name="age", weight=3.0),))],
    )
    memory = Memory().remember([RowOrder(order=np.arange(40))])
    view = replace(session.context("r1c1"), stage="upload", round=3, memory=memory)
    plan = session.session.terms.plan("r1c1")
    assert plan is not None
    found = []
    for age, ward in ((0.0, 0), (9.0, 2), (1e6, 1)):
        moved = X.copy()
        moved[5] = age, ward
        columns = plan.prepare(plan.take_logarithms(moved), np.empty(0))
        found.append(party._encode_rows(view, columns)[0])
    for other in found[1:]:
        assert np.array_equal(
            np.delete(other.codes, 5, 0), np.delete(found[0].codes, 5, 0)
        )
        assert np.array_equal(other.bounds, found[0].bounds)
        assert np.array_equal(other.sizes, found[0].sizes)


def test_the_terms_set_the_privacy_loss_of_a_session() -> None:
    assert noisy(0.5).epsilon_per_person == 0.5
    layout = Layout.lattice(1, 1)
    plain = ProductQuantisation(n_clusters=1)
    assert plain.epsilon_per_person == np.inf
    for params, spent in ((noisy(0.5), 0.5), (plain, None)):
        data = {"r1c1": MatrixSource(np.hstack([MIXED, MIXED]))}
        said = within(-WIDEST, WIDEST, data, layout)
        run = simulation.run(params, layout, data, seed=1, dictionary=said)
        kept = run.trace.memories["r1c1"].get(PrivacySpending)
        assert kept is not None
        assert kept.epsilon == spent
        told = "privacy" in run.outcomes["r1c1"].report
        assert told == (spent is not None)


def test_a_second_upload_is_refused() -> None:
    for params in (noisy(1.0), ProductQuantisation(n_clusters=1, sub_dim=1)):
        view = standing(params)
        given = party.Encoder().reply(view, messages.Encode(), MatrixSource(MIXED))
        again = replace(view, round=4, memory=view.memory.remember(given.remember))
        with pytest.raises(ProtocolFailed, match="second upload"):
            party.Encoder().reply(again, messages.Encode(), MatrixSource(MIXED))


_QUANTILES: Final = np.linspace(0.0, 1.0, 41)

Statistic = Callable[[Any], float]


def least_epsilon(
    zeros: Sequence[Any], ones: Sequence[Any], statistics: Sequence[Statistic]
) -> float:
    """Return what ε two sources have at least, but for one time in a thousand.

    By the best event 'a statistic is at least t', or below t, that the first half of the
    samples offers, measured on the second half.
    """
    half = len(zeros) // 2
    values = [np.array([[f(x) for f in statistics] for x in s]) for s in (zeros, ones)]
    best = (-np.inf, 0, 0.0, 1)
    for column in range(len(statistics)):
        chosen = [each[:half, column] for each in values]
        for t in np.unique(np.quantile(np.concatenate(chosen), _QUANTILES)):
            for sign in (1, -1):
                first, second = (_count(each, float(t), sign) for each in chosen)
                found = max(_promise(first, second), _promise(second, first))
                best = max(best, (found, column, float(t), sign))
    _, column, t, sign = best
    counts = [_count(each[half:, column], t, sign) for each in values]
    ends = [
        stats.binomtest(k, len(zeros) - half).proportion_ci(1 - 5e-4) for k in counts
    ]
    return max(
        float(np.log(max(this.low, 1e-300) / other.high))
        for this, other in (ends, ends[::-1])
    )


def _count(values: FloatArray, t: float, sign: int) -> int:
    return int(np.count_nonzero(sign * values >= sign * t))


def _promise(often: int, rarely: int) -> float:
    """Return a careful guess at the logarithm of the ratio of two counts."""
    sure = max(often - 3.3 * np.sqrt(often), 1e-3)
    return float(np.log(sure / (rarely + 3.3 * np.sqrt(rarely) + 5.0)))
