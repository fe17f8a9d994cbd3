"""Terms that give one reader two kinds that open each other are opened by nobody."""

from __future__ import annotations

from typing import Any

import pytest

from clustering_protocols import registry
from clustering_protocols.contract import Params
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.registry import Proposal, check_terms, draw_up, name_of
from clustering_protocols.release import Release
from clustering_protocols.schema import numbers
from clustering_protocols.terms import Layout, Terms, read_terms
from party_sdk.policy import Policy

NAMES = ("a", "b")


def drawn(params: Params, *columns: int, readers: Any = "everybody") -> Terms:
    layout = Layout.lattice(3, *columns)
    proposal = Proposal(
        protocol=name_of(params),
        params=params.model_dump(mode="json"),
        layout=layout,
        dictionary=(numbers(NAMES, -9, 9),) * layout.n_column_groups,
        release=Release(profiles=readers) if readers else None,
        seed=0,
    )
    return read_terms(draw_up("s", proposal))


CLASHING = [
    (DataCollaboration(n_clusters=3), 1),
    (DataCollaboration(n_clusters=3), 2),
    (DataCollaboration(n_clusters=3, output="coordinates"), 2),
    (OmniFC(n_clusters=3), 1),
    (OmniFC(algorithm="dbscan", distances="landmarks"), 1),
]


@pytest.mark.threat(155)
@pytest.mark.parametrize(("params", "n_columns"), CLASHING)
def test_a_told_profile_beside_rows_up_to_a_motion_is_refused_on_every_side(
    params: Params, n_columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidParameters, match="profiles 'members'"):
        drawn(params, n_columns)
    with monkeypatch.context() as earlier:
        earlier.setattr(registry, "_check_opening", lambda *_: None)
        terms = drawn(params, n_columns)
    assert check_terms(terms) == params, "what was written stays readable"
    policy = Policy(accepted_risks=frozenset(terms.risks))
    with pytest.raises(InvalidParameters, match="profiles 'members'"):
        policy.check_terms(terms)
    drawn(params, n_columns, readers="members")


def test_the_same_profile_goes_with_sums_of_rows() -> None:
    terms = drawn(LosslessFederated(n_clusters=3))
    Policy(accepted_risks=frozenset(terms.risks)).check_terms(terms)


@pytest.mark.threat(156)
def test_a_tolerance_that_ends_after_one_update_is_opened_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    params = LosslessFederated(n_clusters=3, tol=1e9)
    with pytest.raises(InvalidParameters, match="tol: 1e"):
        drawn(params, readers=None)
    with monkeypatch.context() as earlier:
        earlier.setattr(registry, "_check_opening", lambda *_: None)
        terms = drawn(params, readers=None)
    assert check_terms(terms) == params
    with pytest.raises(InvalidParameters, match="tol"):
        Policy(accepted_risks=frozenset(terms.risks)).check_terms(terms)
    drawn(params.model_copy(update={"tol": 0.1}), readers=None)


def test_terms_that_lack_a_risk_named_later_are_read_and_opened_by_nobody() -> None:
    code = "llf.given-start-and-means-show-rows"
    params = LosslessFederated(
        n_clusters=1, init="given", initial_centroids=((0.0, 0.0),)
    )
    terms = drawn(params, readers=None)
    assert code in terms.risks
    before = terms.model_copy(
        update={"risks": tuple(each for each in terms.risks if each != code)}
    )
    assert check_terms(before) == params
    with pytest.raises(InvalidParameters, match="other risks"):
        Policy(accepted_risks=frozenset(terms.risks)).check_terms(before)
    Policy(accepted_risks=frozenset(terms.risks)).check_terms(terms)
    with pytest.raises(InvalidParameters, match="other risks"):
        check_terms(terms.model_copy(update={"risks": before.risks[1:]}))
