"""What sessions of `llf` show of rows, and to whom."""

from __future__ import annotations

from clustering_protocols.contract import Disclosure, Kind, Reader, to
from clustering_protocols.terms.terms import Layout

from .params import LosslessFederated


def shown_by(params: LosslessFederated, layout: Layout) -> frozenset[Disclosure]:
    """Return what a session shows, but for the moments that parties pool."""
    if layout.n_column_groups == 1:
        return _of_rows(params)
    return _of_columns(params)


def _of_rows(params: LosslessFederated) -> frozenset[Disclosure]:
    """Return sums of every round, to the parties; outside what the terms publish."""
    shown = to(Reader.GROUP, Kind.SUMS, Kind.MEANS, Kind.LABELS)
    if params.fuzzy and params.small_cohorts == "allow":
        shown |= to(Reader.GROUP, Kind.VALUES)
    if params.publish == "centroids":
        shown |= to(Reader.OUTSIDE, Kind.MEANS)
    return shown


def _of_columns(params: LosslessFederated) -> frozenset[Disclosure]:
    """Return distances, or their differences: the joint rows up to a motion.

    Coarse steps of a field show its values in them. Memberships give the same to every
    party: u^(1-m) is the distances, up to a factor of each row.
    """
    shown = to(Reader.ALL, Kind.GEOMETRY, Kind.VALUES) if params.fuzzy else frozenset()
    shown |= to(Reader.OUTSIDE, Kind.GEOMETRY, Kind.VALUES, Kind.LABELS)
    return shown | to(Reader.GROUP, Kind.MEANS, Kind.LABELS)
