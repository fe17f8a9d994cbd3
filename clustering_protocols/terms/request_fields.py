"""The fields of a session request that forms and commands ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.values import validate_values
from clustering_protocols.terms.captions import Caption, captioned_fields
from clustering_protocols.terms.terms import SessionRequest


class RequestField(NamedTuple):
    """A field of a request; ``name`` is empty if it stands for a whole section."""

    section: str
    name: str
    info: FieldInfo
    caption: Caption

    @property
    def option(self) -> str:
        """Return the field's command-line option as a Python identifier."""
        return self.caption.flag.lstrip("-").replace("-", "_")

    @property
    def form_name(self) -> str:
        """Return the name of the field in a form."""
        return self.caption.name or self.option


def request_fields() -> Iterator[RequestField]:
    """Yield the fields of a request that forms and commands ask for, by section."""
    whole = {name: caption for name, _, caption in captioned_fields(SessionRequest)}
    for section, info in SessionRequest.model_fields.items():
        if section in whole and whole[section].group is not None:
            yield RequestField(section, "", info, whole[section])
        for name, field_info, caption in captioned_fields(_section_model(info)):
            yield RequestField(section, name, field_info, caption)


def _section_model(info: FieldInfo) -> type[BaseModel]:
    """Return the model of a section or its items, or BaseModel if it has none."""
    options = get_args(info.annotation)
    kinds = (info.annotation, *options, *(k for o in options for k in get_args(o)))
    models = (k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel))
    return next(models, BaseModel)


def read_sections(
    value_of: Callable[[RequestField], Any],
) -> dict[str, dict[str, Any]]:
    """Return all values that ``value_of`` finds filled in, by section and field."""
    sections: dict[str, dict[str, Any]] = {}
    for field in request_fields():
        value = value_of(field) if field.name else None
        if value not in (None, ""):
            sections.setdefault(field.section, {})[field.name] = value
    return sections


def build_section(section: str, values: Mapping[str, Any]) -> Any:
    """Build a section from these values.

    Raises InvalidParameters, which names the invalid or missing field.
    """
    fields = [field for field in request_fields() if field.section == section]
    for field in fields:
        if field.caption.lacking and field.name not in values:
            answered = next(f for f in fields if f.name in values)
            raise InvalidParameters(field.caption.lacking, field=answered.form_name)
    return validate_values(_section_model(SessionRequest.model_fields[section]), values)
