"""`fccm` round by round: refusals, a lying analyst, and what the analyst can read."""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from support.attacks import looks_like_noise, sent_packets
from support.coclusters import Session, blocks
from support.lies import alter, altered

from clustering_protocols.common.errors import InvalidData, ProtocolFailed
from clustering_protocols.engine import packets
from clustering_protocols.protocols.fccm import CoClustering, messages, site_state
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum
from clustering_protocols.simulation import ANALYST

GROUPS = (27, 24, 21, 18)
X = blocks()
made = partial(
    CoClustering, small_cohorts="allow", n_clusters=4, max_iter=8, tol=0.0, n_init=1
)


def session(R: FloatArray = X, **more: Any) -> Session:
    return Session(made(**more), R, GROUPS)


def at(number: int, **more: Any) -> Session:
    found = session(**more)
    found.play_until(messages.Add, number)
    return found


@pytest.mark.parametrize(("value", "r_max"), [(1.5, 1.0), (-1e-9, 1.0), (-1.0, 9.0)])
@pytest.mark.parametrize("column", [0, 40, 89])
def test_values_out_of_range_stop_their_site_before_it_joins(
    value: float, r_max: float, column: int
) -> None:
    wrong = X.copy()
    wrong[17, column] = value
    found = "Negative values in data" if value < 0 else "Values too large"
    with pytest.raises(
        InvalidData, match=rf"{found}, .* in x{column}: the terms.* r_max"
    ) as refused:
        session(wrong, r_max=r_max)
    assert str(value) not in refused.value.detail


def test_items_that_are_too_crisp_end_the_session() -> None:
    s = session(lambda_w=0.001)
    with pytest.raises(ProtocolFailed, match="choose a larger lambda_w"):
        s.follow()
    assert s.kinds().count("share") == 4 * (site_state.MAX_REPEATS + 2)
    assert not s.found


@pytest.mark.parametrize("by", [1, 2**20, 2**45])
def test_a_total_that_one_site_alone_was_told_ends_the_session(by: int) -> None:
    s = at(4)
    with pytest.raises(ProtocolFailed, match="not the sum"):
        s.play_round(forged={"r1c3": altered(s, "r1c3", partial(shifted, by=by))})


def shifted(task: messages.Add, by: int) -> Mapping[str, Any]:
    total = task.total.copy()
    total[5] += np.uint64(by)
    return {"total": total}


def test_sums_and_normalisers_have_each_a_bound_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the normalisers have fewer bits, the sums are still encoded with their own."""
    encodings = site_state.encodings

    def coarse(plan: Any) -> tuple[FixedPoint, FixedPoint]:
        of_sums, of_Z = encodings(plan)
        return of_sums, FixedPoint.of(of_Z.bound, 40)

    monkeypatch.setattr(site_state, "encodings", coarse)
    assert max(session(max_iter=3).follow().found) == 3


def test_the_last_total_is_compared_too() -> None:
    """Otherwise one site would end with another U after the same number of iterations."""
    s = at(9)
    lie = altered(s, "r1c3", partial(shifted, by=2**40))
    with pytest.raises(ProtocolFailed):
        s.run_to_end(forged={"r1c3": lie})


def test_sizes_in_which_sites_differ_end_the_session() -> None:
    s = session()
    s.play_until(messages.ReportSizes)
    given = {slot: s.answer(slot).contribution for slot in s.open.tasks}
    given["r1c4"] = alter(s.agreement, given["r1c4"], lambda _: {"digest": "0" * 64})
    with pytest.raises(ProtocolFailed, match="do not agree on the sizes"):
        s.advance(given)


def told(s: Session) -> list[messages.SizeReport]:
    s.play_until(messages.ReportSizes)
    answers = [packets.parse(s.answer(slot).contribution) for slot in s.open.tasks]
    found = [answer.read([messages.SizeReport]) for answer in answers]
    return [each for each in found if isinstance(each, messages.SizeReport)]


def test_the_leader_alone_says_sizes_and_none_of_a_small_cluster() -> None:
    uneven = np.vstack([X[:50], np.tile(X[0], (50, 1))])
    s = session(uneven, min_cluster_rows=30)
    leader, *others = told(s)
    sizes = s.run_to_end().outcomes["r1c1"].cluster_sizes
    assert sizes is not None
    assert (sizes < 30).any()
    fives = [5 * round(size / 5) for size in sizes.tolist() if size >= 30]
    assert sorted(leader.sizes.tolist()) == sorted(fives)
    for each in others:
        assert len(each.sizes) == len(each.clusters) == 0
        assert each.figures is None


def test_memberships_whose_sums_are_asked_for_again_do_not_rest() -> None:
    s = session(max_iter=2)
    s.play_until(messages.ReportSizes)
    here, known = s.context("r1c1"), s.recall("r1c1", messages.Memberships)
    assert site_state.lanes_under_way(here, known) == []
    for repeats in (1, 2):
        again = known.model_copy(update={"repeats": repeats})
        assert site_state.lanes_under_way(here, again) == [0]


def test_a_mark_of_sizes_is_that_of_no_guess() -> None:
    """A digest without a secret would let any reader of the audit guess the sizes."""
    marks = [each.digest for each in told(session())]
    assert len(set(marks)) == 1
    sizes = session().run_to_end().outcomes["r1c1"].cluster_sizes
    assert sizes is not None
    assert marks[0] != sha256(sizes.tobytes()).hexdigest()
    assert told(Session(made(), X, GROUPS, seed=6))[0].digest != marks[0]


def large(**more: Any) -> Session:
    R = blocks(800, 60)
    params = made(max_iter=3, **more)
    return Session(params, R, (20, 20, 20))


def sent_shares(s: Session) -> list[WordArray]:
    return [packet.arrays["words"] for packet in sent_packets(s, "share")]


@pytest.mark.parametrize("n_init", [1, 3])
def test_every_share_is_noise(n_init: int) -> None:
    s = large(n_init=n_init).follow()
    shares = sent_shares(s)
    assert len(shares) == 3 * 4
    for words in shares:
        looks_like_noise(words)
    for one in range(0, 12, 3):
        looks_like_noise(shares[one] - shares[(one + 3) % 12])


def test_a_share_that_overflows_is_noise_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_state, "HEADROOM", 1.0)
    s = large(lambda_w=1.0, lambda_u=0.05).follow()
    assert s.overflowed() > 0
    for words in sent_shares(s):
        looks_like_noise(words)


def test_blind_totals_are_noise_and_nothing_plain_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain: dict[str, list[WordArray]] = defaultdict(list)
    mask = CheckedSum.mask

    def keep(checked: CheckedSum, context: Any, words: WordArray, of: Any) -> WordArray:
        plain[of.name].append(np.array(words).ravel())
        return mask(checked, context, words, of)

    monkeypatch.setattr(CheckedSum, "mask", keep)
    s = large().follow()
    assert [len(shares) for shares in plain.values()] == [3] * 4
    sent = [packets.parse(m.payload).arrays for m in s.sent if m.sender == ANALYST]
    totals = [each["total"] for each in sent if each.get("total", np.empty(0)).size]
    assert len(totals) >= 3 * 4
    for total in totals:
        looks_like_noise(total)
    stored = np.concatenate(
        [np.frombuffer(m[: len(m) // 8 * 8], dtype=np.uint64) for m in s.stored]
    )
    for shares in plain.values():
        for canary in (np.sum(shares, axis=0, dtype=np.uint64), *shares):
            assert not np.isin(canary[canary > 1000], stored).any()
