"""No session is opened or joined if one reader would get two clashing disclosures."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from support import drawn_terms

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.contract.disclosures import (
    Disclosure,
    Kind,
    Reader,
    check_disclosures,
    disclosures_of_preparation,
    disclosures_of_release,
    disclosures_to,
    find_clashes,
)
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.mixture import Mixture
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.session_terms import check_terms, disclosures_of_terms
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout, Terms
from party_sdk.home.policy import Policy

Earlier = Callable[[], AbstractContextManager[None]]

NAMES = ("a", "b")


def drawn(params: Params, *columns: int, readers: Any = "everybody") -> Terms:
    layout = Layout.lattice(3, *columns)
    dictionary = (numeric_schema(NAMES, -9, 9),) * layout.n_column_groups
    release = Release(profiles=readers) if readers else None
    return drawn_terms.drawn(params, layout, dictionary=dictionary, release=release)


CLASHING = [
    (DataCollaboration(n_clusters=3), 1),
    (DataCollaboration(n_clusters=3), 2),
    (DataCollaboration(n_clusters=3, output="coordinates"), 2),
    (OmniFC(n_clusters=3), 1),
    (OmniFC(algorithm="dbscan", distances="landmarks"), 1),
]


@pytest.mark.threat(155)
@pytest.mark.parametrize(("params", "n_columns"), CLASHING)
def test_published_profiles_with_rows_up_to_motion_are_refused(
    params: Params, n_columns: int, earlier: Earlier
) -> None:
    with pytest.raises(InvalidParameters, match="profiles 'members'"):
        drawn(params, n_columns)
    with earlier():
        terms = drawn(params, n_columns)
    assert check_terms(terms) == params, "what was written stays readable"
    policy = Policy(accepted_risks=frozenset(terms.risks))
    with pytest.raises(InvalidParameters, match="profiles 'members'"):
        policy.check_terms(terms)
    drawn(params, n_columns, readers="members")


def test_the_same_profile_goes_with_sums_of_rows() -> None:
    terms = drawn(LosslessFederated(n_clusters=3))
    Policy(accepted_risks=frozenset(terms.risks)).check_terms(terms)


def opened_by_nobody(earlier: Earlier, params: LosslessFederated, said: str) -> None:
    """Neither is it drawn up, nor joined where an earlier release drew it up."""
    with pytest.raises(InvalidParameters, match=said):
        drawn(params, readers=None)
    with earlier():
        terms = drawn(params, readers=None)
    assert check_terms(terms) == params
    with pytest.raises(InvalidParameters, match=said):
        Policy(accepted_risks=frozenset(terms.risks)).check_terms(terms)


@pytest.mark.threat(156)
def test_a_tolerance_that_stops_after_one_update_is_refused(earlier: Earlier) -> None:
    params = LosslessFederated(n_clusters=3, tol=1e9)
    opened_by_nobody(earlier, params, "tol: 1e")
    drawn(params.model_copy(update={"tol": 0.1}), readers=None)


@pytest.mark.threat(139)
def test_degrees_that_are_those_of_c_means_are_opened_by_nobody(
    earlier: Earlier,
) -> None:
    """No comparison of totals and no audit is made of degrees."""
    params = LosslessFederated(n_clusters=3, algorithm="fuzzy_cmeans", fuzzifier=1.001)
    opened_by_nobody(earlier, params, "fuzzifier: 1.001")
    drawn(params.model_copy(update={"fuzzifier": 1.1}), readers=None)
    drawn(params.model_copy(update={"algorithm": "cmeans"}), readers=None)
    catalogue.protocol("llf").check_opening(params, Layout.lattice(1, 2))


def test_pooled_fillings_show_means_to_those_who_pool_them() -> None:
    plans = drawn_terms.drawn(
        LosslessFederated(n_clusters=3),
        Layout.lattice(3),
        dictionary=(numeric_schema(NAMES, -9, 9),),
        preparation=(Preparation(fields=(Treatment(name="a", missing="mean"),)),),
    ).plans
    assert disclosures_of_preparation(plans, Layout.lattice(2)) == disclosures_to(
        Reader.GROUP, Kind.MEANS, Kind.SUMS
    )
    assert not disclosures_of_preparation(plans, Layout.lattice(1))
    assert not disclosures_of_preparation((), Layout.lattice(3))
    assert not disclosures_of_preparation(
        drawn(OmniFC(n_clusters=3), readers=None).plans, Layout.lattice(3)
    )


@pytest.mark.parametrize("publish", ["centroids", "sizes", "nothing"])
def test_published_sizes_are_declared(publish: Any) -> None:
    published = [LosslessFederated(n_clusters=3, publish=publish)]
    if publish != "nothing":
        published.append(Mixture(n_clusters=3, publish=publish))
    for params in published:
        declared = disclosures_of_terms(drawn_terms.drawn(params, Layout.lattice(3)))
        sizes = Disclosure(Reader.OUTSIDE, Kind.SIZES)
        assert (sizes in declared) == (publish != "nothing")


def test_terms_of_several_runs_declare_their_sizes() -> None:
    params, runs = LosslessFederated(n_clusters=3), Evaluation(n_clusters=(2, 3))
    one = drawn_terms.drawn(params, Layout.lattice(1, 3))
    several = drawn_terms.drawn(params, Layout.lattice(1, 3), evaluation=runs)
    sizes = disclosures_to(Reader.OUTSIDE, Kind.SIZES)
    assert disclosures_of_terms(several) - disclosures_of_terms(one) == sizes


def test_a_release_shows_nothing_where_no_group_adds_up() -> None:
    told = Release(profiles="everybody")
    assert not disclosures_of_release(told, Layout.lattice(1, 2))
    assert not disclosures_of_release(None, Layout.lattice(3))
    assert disclosures_of_release(told, Layout.lattice(3)) > disclosures_of_release(
        Release(profiles="members"), Layout.lattice(3)
    )


@pytest.mark.parametrize("kinds", [{Kind.GEOMETRY}, {Kind.PLACES}])
def test_kinds_clash_at_one_reader_alone(kinds: set[Kind]) -> None:
    first = disclosures_to(Reader.OUTSIDE, *kinds)
    assert not list(find_clashes(first | disclosures_to(Reader.ALL, Kind.MEANS)))
    check_disclosures(
        first | disclosures_to(Reader.OUTSIDE, Kind.SUMS, Kind.LABELS, Kind.VALUES)
    )
    together = first | disclosures_to(Reader.OUTSIDE, Kind.MEANS)
    [found] = find_clashes(together)
    assert found == (Reader.OUTSIDE, kinds | {Kind.MEANS})
    with pytest.raises(InvalidParameters):
        check_disclosures(together)
