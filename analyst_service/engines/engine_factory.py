"""The engine that an analyst uses for its steps, as chosen in its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from typing_extensions import Buffer

from analyst_service.blobs import BlobLocation
from clustering_protocols.numerics.blocks import Engine, LocalEngine

# Worker processes unpickle the choice, and do not have to import the settings.
if TYPE_CHECKING:
    from analyst_service.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """The choice of an engine, which can be sent to other processes.

    scheduler: the address of a Dask scheduler; if empty, a local cluster is started.
    seconds: how long a step waits for the next result.
    """

    kind: Literal["local", "dask"] = "local"
    scheduler: str = ""
    seconds: float = 300.0

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the engine that an analyst with these settings uses."""
        if settings.engine == "local":
            return cls()
        address = "" if settings.engine == "dask" else settings.engine
        return cls(kind="dask", scheduler=address.replace("tcp+plain:", "tcp:"))

    @property
    def spawns_workers(self) -> bool:
        """Whether steps start worker processes of their own on this machine."""
        return self.kind == "dask" and not self.scheduler

    def open_engine(self, place: BlobLocation, mapped: Mapping[str, Buffer]) -> Engine:
        """Return the engine for one step.

        mapped: the blobs of the step by digest, mapped into memory.
        """
        local = LocalEngine(os.cpu_count() or 1)
        if self.kind == "local":
            return local
        from analyst_service.engines.dask_engine import DaskEngine, connect_to_cluster
        from analyst_service.engines.tasks import MappedBlobs

        return DaskEngine(
            local,
            lambda: connect_to_cluster(self.scheduler, self.seconds, place),
            # Workers on this machine read whole blobs from the cache, without checks.
            MappedBlobs(mapped, is_checked=bool(place.url and self.scheduler)),
        )
