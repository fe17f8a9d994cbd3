"""Frozen JSON values: what terms and agreements are made of."""

from __future__ import annotations

from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    model_serializer,
)


class Value(BaseModel):
    """Base of the frozen JSON values; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Section(Value):
    """A value of which only what is used is written: no None, empty text or mapping.

    So what is added to a section later changes no terms that do not use it.
    """

    @model_serializer(mode="wrap")
    def _write_what_is_used(
        self, write: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        return {
            name: value
            for name, value in written.items()
            if value not in (None, "", {})
        }
