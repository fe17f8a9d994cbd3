"""What an administrator may set about where steps compute."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Final, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator
from pydantic_settings import BaseSettings

# Anyone who reaches a scheduler runs code where its workers are.
_SCHEDULER: Final = re.compile(
    r"tls://[^/\s@]+:[0-9]{1,5}|tcp://(?:127(?:\.[0-9]{1,3}){3}|localhost|\[::1\]):[0-9]{1,5}"
)

TUNING: Final[dict[str, JsonValue]] = {"tuning": True}
"""Marks a setting that only those who look for a fault touch: see docs/tuning.md."""


class EngineSettings(BaseSettings):
    """The settings of the engine that steps work with."""

    engine: Literal["local", "dask"] = Field(
        default="local",
        description="Where steps work on blocks of rows: in their own process, or on "
        "Dask's workers (pip install 'coterie[dask]').",
    )
    dask_scheduler: str = Field(
        default="",
        description="Address of the scheduler, tls://host:8786; without one each worker "
        "process of the analyst starts Dask's workers on its machine.",
    )
    dask_plain: bool = Field(
        default=False,
        description="Whether a scheduler on this machine may be reached without TLS "
        "(tcp://127.0.0.1): every account of the machine then runs code as the workers.",
    )
    dask_seconds: float = Field(
        default=300.0,
        gt=0,
        description="After how long without a result of Dask's a step is left for later.",
        json_schema_extra=TUNING,
    )

    @field_validator("engine")
    @classmethod
    def _check_engine(cls, engine: str) -> str:
        if engine == "dask" and find_spec("distributed") is None:
            raise ValueError("Dask is not installed: pip install 'coterie[dask]'")
        return engine

    @field_validator("dask_scheduler")
    @classmethod
    def _check_scheduler(cls, address: str) -> str:
        if address and _SCHEDULER.fullmatch(address) is None:
            raise ValueError(
                "a scheduler has an address of the form tls://host:8786; tcp:// is for "
                "127.0.0.1 alone"
            )
        return address

    @model_validator(mode="after")
    def _check_plain_scheduler(self) -> Self:
        if self.dask_scheduler.startswith("tcp://") and not self.dask_plain:
            raise ValueError(
                "COTERIE_DASK_SCHEDULER speaks no TLS: every account of this machine "
                "would run code as its workers. Start it with TLS (tls://…), or allow "
                "it by COTERIE_DASK_PLAIN=true"
            )
        return self
