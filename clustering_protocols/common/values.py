"""Frozen JSON values, of which terms are made, and what is said where they do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import CONTROLS, NAME_PATTERN

if TYPE_CHECKING:  # who only raises errors does without
    from pydantic import ValidationError

_RULES: Final = {
    "extra_forbidden": "nothing has this name here",
    "missing": "it is needed",
    "int_type": "give a whole number",
    "int_parsing": "give a whole number",
    "int_from_float": "give a whole number",
    "float_type": "give a number",
    "float_parsing": "give a number",
    "finite_number": "give a finite number",
    "string_type": "give a text",
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
    "too_short": "give at least {min_length}",
    "too_long": "give at most {max_length}",
    "string_too_short": "give at least {min_length} characters",
    "string_too_long": "give at most {max_length} characters",
}
"""By the validator's names of its rules; of others its own words will do."""
_PATTERNS: Final = {
    NAME_PATTERN: "use a-z, 0-9 and . _ - beginning with a letter or digit, at most 63 "
    "characters",
    rf"^[^{CONTROLS}]*$": "write it in one line",
}
_UNKNOWN: Final = "extra_forbidden"


def explain(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Return the first finding of a validation as a sentence, without the input.

    known: the names that there are, to say which may be meant by one that is not.
    """
    return invalid_parameters(error, known).detail


def invalid_parameters(
    error: ValidationError, known: Iterable[str] = ()
) -> InvalidParameters:
    """Return the first finding of a validation as a refusal that names its field.

    known: as for :func:`explain`.
    """
    findings = error.errors(include_input=False, include_url=False)
    # A name that is not known comes first: another that is missing may be what it means.
    finding = min(findings, key=lambda found: found["type"] != _UNKNOWN)
    place, said = _place(finding["loc"]), in_words(finding)
    hint = ""
    if finding["type"] == _UNKNOWN:
        hint = did_you_mean(str(finding["loc"][-1]), known)
    if not place:
        return InvalidParameters(f"{said[:1].upper()}{said[1:]}.")
    return InvalidParameters(f"{said}.{hint}", field=place)


def in_words(finding: Mapping[str, Any]) -> str:
    """Return what a finding of the validator says, without a full stop."""
    kind, context = finding["type"], finding.get("ctx") or {}
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context.get("pattern", ""), "it has another form")
    if kind in _RULES:
        return _RULES[kind].format(**context)
    message: str = finding["msg"]
    return message.removeprefix("Value error, ").removesuffix(".")


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `` Did you mean 'x'?``, or nothing where no known name is near."""
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def _place(parts: Iterable[int | str]) -> str:
    """Return where something was found, with the members of lists counted from 1."""
    place = ""
    for part in parts:
        if isinstance(part, int):
            place += f" number {part + 1},"
        elif "[" not in part:  # which names a form of several, such as literal['a','b']
            place += f"{' ' if place.endswith(',') else '.' * bool(place)}{part}"
    return place.removesuffix(",").strip()


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
