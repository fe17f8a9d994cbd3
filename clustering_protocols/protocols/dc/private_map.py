"""How a party makes its private map f_ij from its rows and its choices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.statistics.by_leader import (
    PooledMoments,
    measure,
)

from . import kernels, reductions
from .params import DataCollaboration, DcContext


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMap:
    """A private map, the dimensions that it sends and those that the data have.

    ``scale`` (m,): by what columns are divided before they are reduced.
    """

    function: kernels.RowMap
    width: int
    rank: int
    scale: FloatArray


def fit(context: DcContext, params: DataCollaboration, data: DataSource) -> FittedMap:
    """Return f_ij.

    Raises GuardRefused if a dimension has to be left out and the data have one only, or
        the party's own transformer leaves none out or adds some.
    """
    own = measure(data, moments=True, ranges=False)
    own_spread = np.sqrt(own.deviations / own.n_rows)
    offset, scale = _find_offset_and_scale(context, params, own.mean, own_spread)
    R = kernels.triangular_factor(data, own.mean, scale)
    shift = float(np.linalg.norm(own.mean / scale))
    axes, rank = kernels.principal_axes(R, data.n_rows, shift)
    if params.leaves_one_out:
        _check_rank(context, rank)
    if "transformer" in context.choices:
        return _own_transformer(context, data, rank)
    width = len(own.mean)
    if params.leaves_one_out:
        width = kernels.reduced_width(rank, data.n_rows)
    rotation = context.lasting_stream("rotation").rotation(width)
    if params.reduction == "autoencoder":
        rows = (matrix(data) - offset) / scale
        seed = int(context.lasting_stream("network").words(1)[0] >> np.uint64(33))
        encode = reductions.autoencoder(rows, width, seed)
        function: kernels.RowMap = kernels.TransformedRows(
            function=lambda X: encode((X - offset) / scale), rotation=rotation
        )
        return FittedMap(function=function, width=width, rank=rank, scale=scale)
    if not params.leaves_one_out:
        # Every reduction to all columns is a rotation. To the rank alone would not do:
        # anchors vary in all columns, and what they lose differs from party to party.
        axes = np.eye(width)
    elif params.reduction == "svd":
        R = kernels.triangular_factor(data, offset, scale)
        axes, _ = kernels.principal_axes(R, data.n_rows)
    elif params.reduction == "random":
        axes = reductions.random_axes(
            len(own.mean), width, context.lasting_stream("axes")
        )
    elif params.reduction == "lpp" and rank:
        rows = (matrix(data) - own.mean) / scale
        axes = reductions.locality_preserving_axes(rows, width)
    linear = kernels.Affine(offset=offset, scale=scale, F=axes[:, :width] @ rotation)
    return FittedMap(function=linear, width=width, rank=rank, scale=scale)


def _check_rank(context: DcContext, rank: int) -> None:
    if rank == 1 and not context.choices.get("allow_full_width"):
        raise GuardRefused(
            "The data have one dimension: whatever the map, they would be sent as they "
            "are; the choice 'allow_full_width' overrides this."
        )


def _own_transformer(context: DcContext, data: DataSource, rank: int) -> FittedMap:
    """Return the party's own fitted transformer, which takes rows as they are."""
    transform = context.choices["transformer"].transform

    def function(X: FloatArray) -> FloatArray:
        image = np.asarray(transform(X), dtype=np.float64)
        return image.reshape(len(X), -1)

    width = function(next(iter(data.batches()))[:1]).shape[1]
    if width > len(data.columns):
        raise GuardRefused(
            f"The transformer makes {width} dimensions of {len(data.columns)} features; "
            "the analyst takes no more than there are features."
        )
    if width >= max(rank, 2) and not context.choices.get("allow_full_width"):
        raise GuardRefused(
            f"The transformer sends {width} of {rank} dimensions and leaves none out; "
            "the choice 'allow_full_width' overrides this."
        )
    rotation = context.lasting_stream("rotation").rotation(width)
    mapped = kernels.TransformedRows(function=function, rotation=rotation)
    as_they_are = np.ones(len(data.columns))
    return FittedMap(function=mapped, width=width, rank=rank, scale=as_they_are)


def _find_offset_and_scale(
    context: DcContext,
    params: DataCollaboration,
    mean: FloatArray,
    spread: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return offset and scale of the features, as ``scaling`` says."""
    ones = np.ones_like(mean)
    if params.scaling == "none":
        return np.zeros_like(mean), ones
    if params.scaling == "center":
        return mean, ones
    slot = context.slot.name
    if params.scaling == "local":
        return mean, context.session.units(slot, spread)
    shared = context.recall(PooledMoments)
    return shared.mean, context.session.units(slot, shared.spread)
