"""Engines run the kernels of a step, either in its process or on a Dask cluster.

``dask_engine``, the only module that imports Dask, sends blocks to workers and returns
their results in order. ``tasks`` defines the messages to a worker, which contain
references instead of rows, and the function that it runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from typing_extensions import Buffer

from analyst_service.blobs import BlobLocation
from clustering_protocols.numerics.blocks import Engine, LocalEngine


def open_engine(
    setting: str, place: BlobLocation, mapped: Mapping[str, Buffer]
) -> Engine:
    """Return the engine for one step.

    setting: the value of the setting ``engine``.
    mapped: the blobs of the step by digest, mapped into memory.
    """
    local = LocalEngine(os.cpu_count() or 1)
    if setting == "local":
        return local
    from analyst_service.engines.dask_engine import DaskEngine, connect_to_cluster
    from analyst_service.engines.tasks import MappedBlobs

    scheduler = "" if setting == "dask" else setting.replace("tcp+plain:", "tcp:")
    return DaskEngine(
        local,
        lambda: connect_to_cluster(scheduler, place),
        # Workers on this machine read whole blobs from the cache, without checks.
        MappedBlobs(mapped, with_checksums=bool(place.url and scheduler)),
    )
