"""Who learns what in a session of `llf`, in the words of its split."""

from __future__ import annotations

from collections.abc import Mapping

from .params import LosslessFederated


def readers_of(params: LosslessFederated, *, rows_split: bool) -> Mapping[str, str]:
    """Return what analyst, parties and coordinator learn."""
    published = _describe_release(params)
    if rows_split:
        analyst = (
            "Numbers of rows and variables, and how far centroids move in each round."
        )
        party = (
            "The cluster of each of its rows, cluster sizes, and the centroids of every "
            "round."
        )
    else:
        party = (
            "The cluster of each of its rows, cluster sizes, and the centroids in its own "
            "variables."
        )
        if params.fuzzy:
            party += " From the memberships it can compute the rows of all others."
        analyst = (
            "All distances of rows to centroids, in a secret order."
            if params.fuzzy
            else "The cluster of each row in a secret order, and how much nearer it is."
        )
        if params.start == "careful":
            analyst += " Before the first update, up to 20,000 rows up to a motion."
    return {
        "analyst": f"{analyst} Of the result: {published}.",
        "party": party,
        "coordinator": f"Of the result: {published}.",
    }


def _describe_release(params: LosslessFederated) -> str:
    return {
        "centroids": "rounded centroids and sizes",
        "sizes": "sizes",
        "nothing": "that it is there",
    }[params.publish]
