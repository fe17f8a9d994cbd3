"""Sessions are refused if their totals could be solved for the items of others."""

from typing import Any

import numpy as np
import pytest
from support.coclusters import sites
from support.examples import refuse_first_tasks

from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidParameters,
    ProtocolFailed,
)
from clustering_protocols.protocols.fccm import CoClustering
from clustering_protocols.protocols.fccm.params import check_weights
from clustering_protocols.session_terms import build_request, draw_up_terms
from clustering_protocols.simulation import Session
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout

SEED = 5
SMALL: dict[str, Any] = {"n_clusters": 1, "n_init": 1, "max_iter": 1}


def begun(widths: list[int], **params: Any) -> Session:
    X = np.random.default_rng(0).random((20, sum(widths)))
    return Session(CoClustering(**SMALL | params), *sites(X, widths), SEED)


@pytest.mark.threat(195)
@pytest.mark.parametrize("max_iter", [1, 2])
def test_as_many_items_of_others_as_it_takes_are_enough(max_iter: int) -> None:
    widths, needed = [900, 118 * max_iter, 118], 118 * (1 + max_iter)
    begun(widths, max_iter=max_iter)
    widths[1] += 1
    begun(widths, max_iter=max_iter)
    with pytest.raises(ProtocolFailed, match=f"takes {needed + 118} items of others"):
        begun(widths, max_iter=max_iter + 1)


@pytest.mark.threat(195)
@pytest.mark.parametrize("widths", [[900, 6, 230], [118, 117, 118]])
def test_a_site_whose_items_cannot_hide_each_other_is_refused(
    widths: list[int],
) -> None:
    with pytest.raises(ProtocolFailed, match=f"has {min(widths)} items.*at least 118"):
        begun(widths)
    begun(widths, small_cohorts="allow")


@pytest.mark.threat(195)
def test_a_cluster_without_weight_does_not_hide_a_crisp_one() -> None:
    """Weights underflow to zero where all items are far from a cluster."""
    view = begun([118] * 3).context("r1c1")
    weights = np.ones((118, 3))
    weights[:, 1] = 0.0
    check_weights(view, weights)
    weights[1:, 2] = 0.0
    with np.errstate(all="raise"), pytest.raises(GuardRefused, match="effectively 1"):
        check_weights(view, weights)


@pytest.mark.parametrize(
    ("params", "fits"),
    [
        ({"max_iter": 9}, "max_iter of at most 4,"),
        ({"n_init": 10}, "n_init 1 with max_iter of at most 4,"),
        ({"n_clusters": 6}, "fewer clusters"),
    ],
)
def test_the_text_says_what_would_fit(params: dict[str, Any], fits: str) -> None:
    with pytest.raises(ProtocolFailed) as refused:
        begun([300, 300, 300], **params)
    assert fits.rstrip(",") in refused.value.detail
    begun([300, 300, 300], **params, small_cohorts="allow")


@pytest.mark.threat(195)
def test_a_dictionary_is_enough_to_refuse_before_anybody_joins() -> None:
    layout = Layout.lattice(1, 3)
    for width, refused in ((118, False), (117, True)):
        dictionary = [numeric_schema([f"x{j}" for j in range(width)], 0, 1)] * 3
        request = build_request(
            CoClustering(**SMALL), layout, dictionary=dictionary, seed=1
        )
        if not refused:
            assert draw_up_terms("s", request)
            continue
        with pytest.raises(InvalidParameters, match="has 117 items"):
            draw_up_terms("s", request)


@pytest.mark.threat(195)
def test_a_site_refuses_what_its_analyst_begins_all_the_same() -> None:
    layout, data = sites(np.random.default_rng(0).random((20, 30)), [10] * 3)
    refuse_first_tasks(CoClustering(**SMALL), layout, data, SEED, "has 10 items")
