"""Base classes of immutable JSON values, and readable messages for invalid ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import CONTROLS, NAME_PATTERN

_RULES: Final = {
    "extra_forbidden": "nothing has this name here",
    "missing": "it is required",
    "int_type": "give a whole number",
    "int_parsing": "give a whole number",
    "int_from_float": "give a whole number",
    "float_type": "give a number",
    "float_parsing": "give a number",
    "finite_number": "give a finite number",
    "string_type": "give text",
    "bool_type": "give true or false",
    "bool_parsing": "give true or false",
    "list_type": "give a list",
    "tuple_type": "give a list",
    "dict_type": "give names and values",
    "model_type": "give names and values",
    "literal_error": "give {expected}",
    "enum": "give {expected}",
    "greater_than": "give more than {gt}",
    "greater_than_equal": "give at least {ge}",
    "less_than": "give less than {lt}",
    "less_than_equal": "give at most {le}",
    "too_short": "give at least {min_length} entries",
    "too_long": "give at most {max_length} entries",
    "string_too_short": "give at least {min_length} characters",
    "string_too_long": "give at most {max_length} characters",
}
"""Clauses for pydantic's error types. Other types keep pydantic's own message."""
_PATTERNS: Final = {
    NAME_PATTERN: "use a-z, 0-9 and . _ - beginning with a letter or digit, at most 63 "
    "characters",
    rf"^[^{CONTROLS}]*$": "write it in one line",
}
_UNKNOWN: Final = "extra_forbidden"


def explain_validation_error(error: ValidationError) -> str:
    """Return the first validation error as a sentence that omits the input."""
    return convert_validation_error(error).detail


def convert_validation_error(
    error: ValidationError, names: Iterable[str] = ()
) -> InvalidParameters:
    """Convert the first error of a pydantic validation to :class:`InvalidParameters`.

    names: valid names, one of which is suggested for a misspelt name.
    """
    findings = error.errors(include_input=False, include_url=False)
    # Report an unknown name first: it may be a misspelling of a missing one.
    finding = min(findings, key=lambda candidate: candidate["type"] != _UNKNOWN)
    field, text = _field_path(finding["loc"]), describe_finding(finding)
    hint = ""
    if finding["type"] == _UNKNOWN:
        hint = suggest_similar_name(str(finding["loc"][-1]), names)
    if not field:
        return InvalidParameters(f"{text[:1].upper()}{text[1:]}.")
    return InvalidParameters(f"{text}.{hint}", field=field)


def describe_finding(finding: Mapping[str, Any]) -> str:
    """Return one of pydantic's error entries as a clause without a full stop."""
    kind, context = finding["type"], finding.get("ctx") or {}
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(
            context.get("pattern", ""), "it does not have the required form"
        )
    if kind in _RULES:
        return _RULES[kind].format(**context)
    message: str = finding["msg"]
    return message.removeprefix("Value error, ").removesuffix(".")


def suggest_similar_name(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `` Did you mean 'x'?``, or an empty string if no name is similar."""
    folded = {candidate.casefold(): candidate for candidate in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def _field_path(parts: Iterable[int | str]) -> str:
    """Return the path of a field, in which the items of lists are counted from 1."""
    path = ""
    *parents, last = [*parts] or [""]
    # pydantic names a number of a union by its type, such as minimum.int
    for part in parents if parents and last in {"int", "float"} else [*parents, last]:
        if isinstance(part, int):
            path += f" number {part + 1},"
        # Skip the union members that pydantic adds to the path, e.g. literal['a','b'].
        elif "[" not in part:
            path += f"{' ' if path.endswith(',') else '.' * bool(path)}{part}"
    return path.removesuffix(",").strip()


_M = TypeVar("_M", bound=BaseModel)


class Value(BaseModel):
    """Base class of immutable JSON values, which reject unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Section(Value):
    """A value that is serialised without None, empty strings and empty mappings.

    When a later release adds an optional field, terms that do not use it stay
    identical.
    """

    @model_serializer(mode="wrap")
    def _dump_nonempty(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return {
            name: value for name, value in fields.items() if value not in (None, "", {})
        }


def validate_values(model: type[_M], values: Mapping[str, Any]) -> _M:
    """Return a validated model; raise :class:`InvalidParameters` for invalid values."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise convert_validation_error(error, model.model_fields) from None
