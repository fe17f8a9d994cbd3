"""JSON of the catalogue."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ProtocolRead(BaseModel):
    """A protocol: what it does, who learns what, what it asks."""

    name: str
    version: int
    title: str
    summary: str
    partitionings: list[str]
    learns: dict[str, str] = Field(description="Who learns what.")
    risks: dict[str, str] = Field(description="Risk codes with a sentence each.")
    choices: dict[str, str] = Field(description="What a party decides alone.")
    params: dict[str, Any] = Field(description="JSON Schema of the parameters.")


class Catalogue(BaseModel):
    """All protocols."""

    protocols: list[ProtocolRead]
