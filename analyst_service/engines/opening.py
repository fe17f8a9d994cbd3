"""Which engine a step gets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from typing_extensions import Buffer

from analyst_service.blobs.opening import BlobPlace
from clustering_protocols.blocks import Engine, LocalEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """Where kernels run; it may go to another process, which opens the same.

    scheduler: address of a Dask scheduler; without one Dask's workers are started here.
    seconds: how long a step waits for the next result.
    """

    kind: Literal["local", "dask"] = "local"
    scheduler: str = ""
    seconds: float = 300.0

    def open(self, place: BlobPlace, mapped: Mapping[str, Buffer]) -> Engine:
        """Return the engine of a step.

        Parameters
        ----------
        place : BlobPlace
        mapped : mapping of str to buffer
            The blobs of the step by digest, as they lie in memory.
        """
        local = LocalEngine(os.cpu_count() or 1)
        if self.kind == "local":
            return local
        from analyst_service.engines.cluster import connected
        from analyst_service.engines.dask_engine import DaskEngine
        from analyst_service.engines.references import Mapped

        return DaskEngine(
            local,
            lambda: connected(self.scheduler, self.seconds, place),
            Mapped(mapped, is_checked=bool(place.url)),
        )
