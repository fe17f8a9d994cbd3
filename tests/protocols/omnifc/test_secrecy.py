"""What shares and answers tell: counted exhaustively over small fields, and measured."""

from collections import Counter
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from support.tables import within

from clustering_protocols import simulation
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.omnifc import OmniFC, maths, messages
from clustering_protocols.records import codec
from clustering_protocols.secrecy.prime import P
from clustering_protocols.terms.terms import Layout
from tests.protocols.engine.sealing import read_before_sealing
from tests.protocols.omnifc.shares import (
    answers,
    hidden,
    integer_distances,
    shares,
    stream,
    words_in,
    words_sent,
)

SMALL = [(1, 1, 3, 11), (2, 1, 5, 13), (1, 2, 5, 11), (2, 2, 7, 17)]


def seen(
    segments: int, noise: int, parties: int, p: int, row: tuple[int, ...], who: Any
) -> Counter[tuple[int, ...]]:
    """Count what some parties hold of a row over all values of the noise."""
    matrix = maths.build_encoding_matrix(segments, noise, parties, p)
    return Counter(
        tuple(
            sum(w * s for w, s in zip(matrix[j], (*row, *drawn), strict=True)) % p
            for j in who
        )
        for drawn in product(range(p), repeat=noise)
    )


@pytest.mark.threat(84)
@pytest.mark.parametrize(("segments", "noise", "parties", "p"), SMALL)
def test_shares_of_any_t_parties_are_uniform_whatever_the_row(
    segments: int, noise: int, parties: int, p: int
) -> None:
    """All values of the noise, all sets of t parties, two rows."""
    rows = [(0,) * segments, tuple(range(3, 3 + segments))]
    for who in combinations(range(parties), noise):
        for row in rows:
            counts = seen(segments, noise, parties, p, row, who)
            assert len(counts) == p**noise
            assert set(counts.values()) == {1}


@pytest.mark.threat(92)
@pytest.mark.parametrize("distances", ["all", "landmarks"])
def test_a_session_s_answers_are_masked_and_add_up(distances: Any) -> None:
    """Without the masks the sum would be right too: each answer has to be looked at."""
    X = np.random.default_rng(2).normal(size=(60, 3))
    parts = simulation.split(X, Layout.lattice(4), seed=0)
    params = OmniFC(n_clusters=2, distances=distances)
    run = simulation.run(params, parts.layout, parts.data, 0)
    weights = maths.build_decoding_weights(1, maths.share_points(4))
    uploads = {
        message.sender: packet.arrays["distances"]
        for message in run.sent
        if (packet := packets.parse(message.payload)).header.record["kind"] == "answer"
    }
    bare = []
    for slot, weight in zip(parts.layout.names, weights, strict=True):
        held = run.trace.memories[slot].get(messages.HeldShares)
        assert held is not None
        # the rows' shares are known to this test alone: unmasked they would show here
        bare.append(maths.combine([weight], answers([held.shares])))
        assert not np.isin(uploads[slot], bare[-1]).any()
        high = (uploads[slot] >> np.uint64(57)).astype(int)
        assert chisquare(np.bincount(high, minlength=16)).pvalue > 1e-4
    total = maths.combine([1] * 4, [uploads[slot] for slot in parts.layout.names])
    if distances == "all":
        assert np.array_equal(total, maths.combine([1] * 4, bare))
    else:  # from the first landmark to the others: sides of a simplex
        np.testing.assert_allclose(total[:3].astype(float), float(total[0]), rtol=1e-6)


@pytest.mark.threat(92)
def test_masked_answers_hide_the_distances_within_segments() -> None:
    """Interpolated at the first data point, answers give those of the first segment."""
    segments, parties = 2, 5
    rows = np.arange(2, 82).reshape(20, 4).astype(np.uint64) ** np.uint64(2)
    plain = answers(shares(rows, segments, 1, parties, stream(5)))
    points = maths.share_points(parties)
    weights = maths.build_decoding_weights(segments, points)
    basis = maths.basis(points, maths.data_points(segments)[0])
    truth = np.array(integer_distances(rows[:, :2]))
    assert np.array_equal(maths.combine(basis, plain), truth)
    unweighted = [b * pow(w, -1, P) % P for b, w in zip(basis, weights, strict=True)]
    assert not (maths.combine(unweighted, hidden(plain, segments)) == truth).any()


def test_the_analyst_sees_neither_quantised_rows_nor_shares() -> None:
    """Shares leave in envelopes alone, and no residue of a row stands in any payload."""
    X = np.random.default_rng(1).normal(size=(36, 3))
    params = OmniFC(n_clusters=2, scaling="none", noise=2)
    parts = simulation.split(X, Layout.lattice(5), seed=0)
    with read_before_sealing() as sealed:
        run = simulation.run(params, parts.layout, parts.data, 0)
    inside = words_in(codec.decode(each.content)[1] for each in sealed)
    assert len(inside) > 4 * 36 * 3 * 0.9  # the shares that went into envelopes
    assert not inside & (words_sent(run) - {0})


def test_equal_rows_of_a_party_have_different_shares() -> None:
    params = OmniFC(n_clusters=1, scaling="none")
    data = {slot: MatrixSource(np.ones((12, 2))) for slot in Layout.lattice(3).names}
    run = simulation.run(params, Layout.lattice(3), data, 0)
    for memory in run.trace.memories.values():
        own = memory.get(messages.OwnShares)
        assert own is not None
        assert len(np.unique(own.shares)) == own.shares.size


def at_the_shares(X: Any) -> simulation.Session:
    layout = Layout.lattice(3)
    data = {
        slot: MatrixSource(rows)
        for slot, rows in zip(layout.names, np.split(X, 3), strict=True)
    }
    params = OmniFC(n_clusters=2, scaling="none", ranges="declared")
    said = within(-9.0, 9.0, data, layout)
    running = simulation.Session(params, layout, data, 5, dictionary=said)
    running.play_until(messages.EncodeRows)
    return running


def test_of_other_rows_all_shares_are_others() -> None:
    """With the same noise, shares of rows that did not change would not change either."""
    rows = np.random.default_rng(0).normal(size=(36, 4)).clip(-8, 8)
    other = rows.copy()
    other[0] += 0.5
    kept = []
    for X in (rows, other):
        running = at_the_shares(rows)
        running.data["r1c1"] = MatrixSource(X[:12])
        own = running.answer("r1c1").memory.get(messages.OwnShares)
        assert own is not None
        kept.append(own.shares)
    assert not (kept[0] == kept[1]).any()
