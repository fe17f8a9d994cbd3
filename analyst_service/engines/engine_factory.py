"""The choice of an engine for steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from typing_extensions import Buffer

from analyst_service.blobs import BlobPlace
from clustering_protocols.numerics.blocks import Engine, LocalEngine

# A worker process unpickles the choice and need not import the settings.
if TYPE_CHECKING:
    from analyst_service.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """Choice of an engine, which several processes may open.

    scheduler: address of a Dask scheduler; without one a local cluster is started.
    seconds: how long a step waits for the next result.
    """

    kind: Literal["local", "dask"] = "local"
    scheduler: str = ""
    seconds: float = 300.0

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the engine of an analyst with these settings."""
        if settings.engine == "local":
            return cls()
        address = "" if settings.engine == "dask" else settings.engine
        return cls(kind="dask", scheduler=address.replace("tcp+plain:", "tcp:"))

    @property
    def spawns(self) -> bool:
        """Return whether steps start workers of their own on this machine."""
        return self.kind == "dask" and not self.scheduler

    def open(self, place: BlobPlace, mapped: Mapping[str, Buffer]) -> Engine:
        """Return the engine of a step.

        mapped: the blobs of the step in memory, by digest.
        """
        local = LocalEngine(os.cpu_count() or 1)
        if self.kind == "local":
            return local
        from analyst_service.engines.dask_engine import DaskEngine, connect
        from analyst_service.engines.tasks import MappedBlobs

        return DaskEngine(
            local,
            lambda: connect(self.scheduler, self.seconds, place),
            # workers on this machine map the cache, which holds whole blobs
            MappedBlobs(mapped, is_checked=bool(place.url and self.scheduler)),
        )
