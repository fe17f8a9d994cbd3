"""Attacks on `llf` succeed or fail exactly as its risks say."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import load_digits, load_iris, load_wine
from support.attacks import (
    affine,
    from_differences,
    looks_like_noise,
    rigid,
    sent_packets,
    single_movers,
    with_known_rows,
)
from support.tables import cut, within

from clustering_protocols.common.errors import Malformed
from clustering_protocols.engine import packets
from clustering_protocols.protocols.llf import LosslessFederated as Llf, messages
from clustering_protocols.protocols.llf.columns_party import build_distance_encoding
from clustering_protocols.protocols.llf.maths import build_update_encoding, split_sums
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum
from clustering_protocols.shared_stages.scaling import build_scaler
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import start_session

SETS = {"iris": (load_iris, 3), "wine": (load_wine, 3), "digits": (load_digits, 10)}
UNITS = {"scaling": "none"}


def standardised(name: str) -> FloatArray:
    X = SETS[name][0]().data
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)


def rows_session(X: FloatArray, n_parties: int = 3, **params: Any) -> Session:
    widest = 60.0 if UNITS.items() <= params.items() else None
    return start_session(X, sizes=n_parties, widest=widest, **{"seed": 5, **params})


def stored_totals(session: Session) -> WordArray:
    found = {}
    for message in session.stored:
        arrays = opened(message)
        for update, total in zip(
            arrays.get("updates", ()), arrays.get("totals", ()), strict=True
        ):
            found[int(update[0])] = total[:-1]  # behind it stands the tag
    return np.array([found[number] for number in sorted(found)])


def opened(message: bytes) -> Any:
    try:
        return packets.parse(message).arrays
    except Malformed:
        return {}


def update_units(session: Session) -> FloatArray:
    plan = session.session
    n_rows = sum(member.n_rows for member in plan.agreement.roster)
    code = build_update_encoding(plan.params, build_scaler(plan, 0, None), n_rows)
    return split_sums(code.unit, plan.params.n_clusters)[0][0]


# Rank, and single movers


@pytest.mark.parametrize("seed", [0, 1, 5])  # a row moves alone in each
@pytest.mark.threat(87, 88)
def test_blind_sums_show_no_row_that_moves_alone(seed: int) -> None:
    """Threat tests 87 and 88: what a party reads of the same totals shows such rows."""
    k = 4
    session = rows_session(load_wine().data, n_clusters=k, seed=seed)
    with totals_read("r2c1") as words:
        session.run_to_end()
    totals, read = stored_totals(session), np.array(words)
    assert len(totals) >= 3
    assert not len(single_movers(totals, k, update_units(session)))
    assert len(single_movers(read, k, update_units(session)))
    assert not (read == totals).any()


# Canaries


def encodings(words: WordArray, units: Any) -> Iterator[bytes]:
    """Yield eight bytes for each ring element, in every encoding it might have."""
    numbers = words.view(np.int64)
    large = np.abs(numbers) > 1 << 16  # bytes of a small number occur by chance
    for array in (numbers[large], (numbers / units)[large], numbers[large] + 0.0):
        for order in "<>":
            raw = array.astype(array.dtype.newbyteorder(order)).tobytes()
            yield from (raw[i : i + 8] for i in range(0, len(raw), 8))


ENCODINGS = 6


def found_in(stored: Sequence[bytes], canaries: Iterator[bytes]) -> tuple[int, int]:
    """Return the number of canaries, and how many of them are in stored messages."""
    everything = b"|".join(stored)
    patterns = list(canaries)
    return len(patterns), sum(pattern in everything for pattern in patterns)


@contextmanager
def totals_read(slot: str) -> Iterator[list[WordArray]]:
    """Collect the words of each update's total as a party reads them, without the tag."""
    found: list[WordArray] = []
    unmask = CheckedSum.unmask

    def unmask_and_keep(
        checked: CheckedSum, context: Any, total: Any, of: MaskedSum, fits: Any
    ) -> WordArray:
        words = unmask(checked, context, total, of, fits)
        if context.slot.name == slot and of.name == f"update/{len(found) + 1}":
            found.append(words)
        return words

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckedSum, "unmask", unmask_and_keep)
        yield found


CLOUD = np.random.default_rng(1).normal(0.0, 3.0, size=(150, 4)).clip(-20, 20)
START = tuple(tuple(map(float, row)) for row in CLOUD[:3] * 0.9 + 0.1)


def cloud_session(**more: Any) -> tuple[Session, WordArray]:
    """Return a session at its end, and the totals (updates, k·F + k) that a party read."""
    params = {
        "n_clusters": 3,
        **UNITS,
        "init": "given",
        "initial_centroids": START,
        "max_iter": 8,
        "tol": 0.0,
        "publish": "sizes",
        **more,
    }
    session = rows_session(CLOUD, **params)
    with totals_read("r2c1") as words:
        session.run_to_end()
    return session, np.array(words)


@pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
@pytest.mark.threat(87)
def test_no_total_is_in_what_a_blind_analyst_stores(algorithm: str) -> None:
    """Threat test 87: sums, means and each party's share, in all encodings."""
    session, words = cloud_session(algorithm=algorithm)
    units = update_units(session)
    totals = words[:, :-3].reshape(8, 3, -1)
    n_canaries, found = found_in(session.stored, encodings(totals, units))
    assert n_canaries >= 8 * 12 * ENCODINGS * 0.9
    assert found == 0
    last = session.recall("r2c1", messages.Centroids)
    assert last.number == 8
    means = [
        v.astype(e).tobytes() for v in last.centroids.ravel() for e in ("<f8", ">f8")
    ]
    assert found_in(session.stored, iter(means))[1] == 0
    for words in own_sums(units):
        assert found_in(session.stored, encodings(words, units))[1] == 0


def own_sums(units: FloatArray) -> Iterator[WordArray]:
    """Yield what each party adds to the first update of c-means."""
    for part in np.array_split(CLOUD, 3):
        labels = cdist(part, np.array(START)).argmin(axis=1)
        sums = np.eye(3)[labels].T @ np.rint(part * units)
        yield sums.astype(np.int64).view(np.uint64)


def test_the_totals_that_are_searched_for_are_those_of_the_rows() -> None:
    session, words = cloud_session()
    first = words[0, :-3].reshape(3, -1)
    own = list(own_sums(update_units(session)))
    expected = np.sum(own, axis=0, dtype=np.uint64)
    assert np.array_equal(first, expected)


def test_a_blind_analyst_learns_rounded_moves_and_no_start() -> None:
    session = rows_session(load_wine().data, n_clusters=3)
    session.run_to_end()
    sent = sent_packets(session, messages.Sums.kind)
    assert not any(packet.arrays["start"].size for packet in sent)
    moves = [packet.header.record["values"]["moved"] for packet in sent]
    told = [moved for moved in moves if moved is not None]
    assert len(told) >= 2
    assert all(moved == float(f"{moved:.1e}") for moved in told)
    assert moves.count(None) > len(told), "the leader alone says it"


# Noise


def words_sent(session: Session, kind: str, slot: str) -> WordArray:
    sent = sent_packets(session, kind, slot)
    return np.array([packet.arrays["words"] for packet in sent])


@pytest.fixture(scope="module", params=["cmeans", "fuzzy_cmeans"])
def wide(request: pytest.FixtureRequest) -> Session:
    """Return a session with sums of 700 features, which are enough bytes for statistics."""
    X = np.random.default_rng(0).normal(size=(900, 700)).clip(-50, 50)
    session = rows_session(
        X,
        n_clusters=20,
        algorithm=request.param,
        **UNITS,
        init="given",
        initial_centroids=tuple(tuple(map(float, row)) for row in X[:20]),
        max_iter=9,
        tol=0.0,
    )
    session.run_to_end()
    return session


@pytest.mark.threat(76, 87)
def test_differences_of_stored_totals_are_noise(wide: Session) -> None:
    """Threat tests 76 and 87: by subtraction and by exclusive or."""
    totals = stored_totals(wide)
    assert len(totals) >= 5
    assert totals.nbytes > 400_000
    looks_like_noise(totals)
    looks_like_noise(totals[1:] - totals[:-1])
    looks_like_noise(totals[1:] ^ totals[:-1])


@pytest.mark.parametrize("slot", ["r1c1", "r2c1", "r3c1"])
@pytest.mark.threat(75, 76)
def test_shares_of_a_party_and_their_differences_are_noise(
    wide: Session, slot: str
) -> None:
    shares = words_sent(wide, messages.Sums.kind, slot)
    assert shares.nbytes > 400_000
    looks_like_noise(shares)
    looks_like_noise(shares[1:] - shares[:-1])
    assert np.unique(shares).size == shares.size


def test_shares_of_many_sessions_over_the_same_rows_are_noise() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 40)).clip(-50, 50)
    layout = Layout.lattice(3)
    params = Llf(n_clusters=3, **UNITS, init="bounds", max_iter=1)
    shares = []
    for number in range(40):
        data = cut(rows, layout, [20, 20, 20])
        said = within(-60.0, 60.0, data, layout)
        session = Session(
            params, layout, data, seed=5, session=f"s{number}", dictionary=said
        )
        session.play_until(messages.Update)
        answer = session.answer("r2c1").contribution
        shares.append(packets.parse(answer).arrays["words"])
    words = np.array(shares)[:, :-1]  # without the tag, which is a residue
    looks_like_noise(words)
    looks_like_noise(words[1:] - words[0])
    # each place of the share by itself: its mean over sessions is that of noise
    high = (words >> np.uint64(32)).astype(np.float64) / 2**32
    z = (high.mean(axis=0) - 0.5) * np.sqrt(12 * len(words))
    assert np.abs(z).max() < 5.0


# Leaving


@pytest.mark.threat(89)
def test_two_totals_tell_the_analyst_nothing_of_a_leaver() -> None:
    """Threat test 89: the late answer to a void attempt, and the total without it."""
    X = np.random.default_rng(0).normal(size=(100, 700)).clip(-50, 50)
    session = rows_session(
        X, n_parties=4, n_clusters=4, **UNITS, init="bounds", quorum=3
    )
    session.play_until(messages.Update, 2)
    late = session.answer("r4c1").contribution
    session.play_round(absent=["r4c1"])
    sent = [share.payload for share in session.received_messages[-3:]]
    first = [words_of(share) for share in [*sent, late]]
    session.play_round()
    second = [words_of(share.payload) for share in session.received_messages[-3:]]
    difference = np.sum(first, axis=0, dtype=np.uint64) - np.sum(
        second, axis=0, dtype=np.uint64
    )
    looks_like_noise(difference)


def words_of(contribution: bytes) -> WordArray:
    return packets.parse(contribution).arrays["words"][:-1]


# Split columns


def columns_session(X: FloatArray, widths: Sequence[int], **params: Any) -> Session:
    given = {"init": "random_rows", "seed": 5, **params}
    session = start_session(X, columns=True, sizes=widths, **given)
    session.run_to_end()
    return session


def distances(session: Session, slot: str) -> WordArray:
    return words_sent(session, messages.Distances.kind, slot)


def totals_of(session: Session) -> WordArray:
    parts = [distances(session, slot) for slot in session.session.slots]
    return np.sum(parts, axis=0, dtype=np.uint64)


def side_by_side(words: WordArray, unit: Any) -> FloatArray:
    """Return (n, rounds * k) numbers of ring elements (rounds, n, k)."""
    return np.hstack(list(words.view(np.int64) / unit))


def close_pairs(guess: FloatArray, X: FloatArray) -> float:
    """Return the share of 500 pairs whose distance comes out within 10 %."""
    chosen = np.random.default_rng(0).choice(len(X) * (len(X) - 1) // 2, 500, False)  # noqa: FBT003  numpy's own order of arguments
    true, found = pdist(X)[chosen], pdist(guess)[chosen]
    return float(np.mean(np.abs(found - true) <= 0.1 * true))


@pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
@pytest.mark.threat(75, 90)
def test_a_partys_distances_are_noise(algorithm: Any) -> None:
    X = np.random.default_rng(0).normal(size=(8000, 3))
    session = columns_session(
        X, [1, 1, 1], n_clusters=5, algorithm=algorithm, max_iter=3
    )
    for slot in session.session.slots:
        sent = distances(session, slot)
        assert sent.nbytes > 800_000
        looks_like_noise(sent)
        looks_like_noise(sent[1:] - sent[:-1])


@pytest.mark.parametrize("name", ["iris", "wine"])
@pytest.mark.threat(90)
def test_the_shift_stops_the_attack_that_needs_distances(name: str) -> None:
    """Threat test 90, joint: from totals and from their differences.

    It stops no more than that: see the next test.
    """
    X, Z = SETS[name][0]().data, standardised(name)
    session = columns_session(X, [X.shape[1] - 2, 1, 1], n_clusters=5, max_iter=30)
    unit = build_distance_encoding(session.session).unit
    totals = totals_of(session)
    assert totals.shape[0] * 4 >= X.shape[1], "as many equations as columns"
    found = [
        close_pairs(rigid(side_by_side(seen, unit), X.shape[1]), Z[travelled(session)])
        for seen in (totals, totals - totals[:, :, :1])
    ]
    assert max(found) <= 0.2


@pytest.mark.parametrize(("name", "k"), [("iris", 5), ("wine", 6)])
@pytest.mark.threat(90)
def test_labels_and_differences_are_the_data_up_to_motion(name: str, k: int) -> None:
    """Threat test 90, joint: what masked c-means over split columns shows the analyst.

    All pairs, though no distance is seen: the shift is no protection against who knows
    that centroids are means of the rows that it labelled.
    """
    X, Z = SETS[name][0]().data, standardised(name)
    session = columns_session(X, [X.shape[1] - 2, 1, 1], n_clusters=k, max_iter=30)
    totals = totals_of(session)
    unit = build_distance_encoding(session.session).unit
    seen = (totals - totals[:, :, :1]).view(np.int64) / unit
    assert close_pairs(from_differences(seen, X.shape[1]), Z[travelled(session)]) > 0.99


def test_differences_and_known_rows_reveal_all_as_the_risk_says() -> None:
    """They reveal rows up to an affine map, which one known row more than columns fixes."""
    X = load_iris().data
    session = columns_session(X, [2, 1, 1], n_clusters=5, max_iter=30)
    totals = totals_of(session)
    L = side_by_side(
        totals - totals[:, :, :1], build_distance_encoding(session.session).unit
    )
    # rows travel in a secret order, which the knowledge of rows brings along
    order = travelled(session)
    known = np.random.default_rng(0).permutation(len(X))[:5]
    found = with_known_rows(affine(L, 4), X[order], known)
    np.testing.assert_allclose(found, X[order], atol=1e-3)


def travelled(session: Session) -> IntArray:
    return session.recall("r1c1", RowOrder).order


@pytest.mark.threat(90)
def test_fuzzy_distances_reveal_the_data_as_the_risk_says() -> None:
    """Threat test 90, joint, where nothing hides the distances."""
    Z = standardised("iris")
    session = columns_session(
        load_iris().data, [2, 1, 1], n_clusters=3, algorithm="fuzzy_cmeans"
    )
    L = side_by_side(totals_of(session), build_distance_encoding(session.session).unit)
    assert close_pairs(rigid(L, 4), Z[travelled(session)]) == 1.0


def test_the_shift_is_fresh_in_every_round_and_row() -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    session = columns_session(X, [1, 1, 1], n_clusters=4, max_iter=2)
    totals = totals_of(session)
    assert np.unique(totals[:, :, 0]).size == totals[:, :, 0].size
    looks_like_noise(totals[:, :, 0])
    looks_like_noise(totals[1, :, 0] - totals[0, :, 0])
