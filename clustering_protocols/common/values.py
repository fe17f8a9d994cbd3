"""Frozen JSON values: what terms and agreements are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from clustering_protocols.common.validation_messages import invalid_parameters

_M = TypeVar("_M", bound=BaseModel)


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


def validate_values(model: type[_M], values: Mapping[str, Any]) -> _M:
    """Return a model of what people said.

    Raises InvalidParameters: it names what does not fit.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise invalid_parameters(error, model.model_fields) from None
