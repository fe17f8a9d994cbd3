"""The draft of a new session: the submitted form, and its validation errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, Final

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import CoterieError, InvalidParameters
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.contract import Params
from clustering_protocols.terms.request_fields import (
    RequestField,
    build_section,
    read_sections,
    request_fields,
)
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout, Terms
from coterie_pages.desk_models import SlotLine
from coterie_pages.form_fields import parameters_of
from party_sdk.coordinator.option_parsing import (
    add_match_keys,
    covariates_of,
    earlier_params,
    layout_of_slots,
    parse_runs,
    parse_values,
    read_expected_keys,
    read_preparation,
)
from party_sdk.desk.coordinator.context import parse_number
from party_sdk.desk.dictionary_drafts import TableDraft
from party_sdk.desk.responses import Form, path_in
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.tables.variables import read_schema

PARAM: Final = "param."
MATCH_KEYS: Final = f"{PARAM}alignment.match_keys"
SPLITS: Final = {
    "patients": "Different people at each party, the same variables",
    "variables": "The same people at each party, different variables",
    "both": "People and variables are both split",
}
"""The ways in which data can be split between parties, with their labels."""
LINKING: Final = f"{PARAM}alignment."
"""Prefix of the parameters for linking rows, which are on the second screen."""
DAY: Final = 86_400
SCREENS: Final = ("What it is for", "Who takes part", "Variables")
"""Titles of the form's screens, which are followed by a review of the terms."""
_NUMBERS: Final = {"words": 1, "runs": 1, "limits": 2, "gaps": 3, "results": 3}
_COLUMN_FIELDS: Final = frozenset(
    ("dictionary", "table", "elsewhere", "ids", "levels", "listed", "variable")
)
_OWN: Final = frozenset({"token", "do", "screen", "folder", "drawn", "seed", "digest"})
"""Fields that are not carried over to other screens."""


def screen_number_of(name: str) -> int:
    """Return the number of the screen that has this field, from 1, or 0 if none has it."""
    head = name.partition(".")[0]
    if name.startswith(LINKING) or head in {"slot", "slots", "split", "people"}:
        return 2
    if head in {"protocol", "param"}:
        return 1
    if head in _COLUMN_FIELDS:
        return 3
    groups = {field.form_name: field.caption.group for field in request_fields()}
    return _NUMBERS.get(groups.get(name) or "", 0)


@dataclass(frozen=True, slots=True)
class Draft:
    """The form of a new session, with the errors of its fields.

    tables: the folder that relative paths are resolved against.
    repeated: the terms of the earlier session that this one repeats, or None.
    left_out: columns of the tables that are not in the dictionary, once it is parsed.
    """

    form: Form
    tables: Path
    repeated: Terms | None = None
    wrong: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return the value of a field without surrounding whitespace."""
        return self.form.get(name).strip()

    def hidden_fields(self, screen: int) -> Iterator[tuple[str, str]]:
        """Yield the fields of other screens, as pairs of a name and a line of text."""
        for name, values in self.form.fields.items():
            if name not in _OWN and screen_number_of(name) != screen:
                for value in values:
                    yield from ((name, line) for line in value.splitlines() or [""])

    def first_screen_with_error(self, last: int) -> int | None:
        """Return the first screen up to ``last`` that has an error, or None."""
        screens = [screen_number_of(name) or last for name in self.wrong]
        return min((n for n in screens if n <= last), default=None)

    @property
    def protocol(self) -> str:
        """Return the chosen protocol's name, or ``dc`` if it is missing or unknown."""
        name = self.get("protocol")
        return name if name in catalogue.catalogue() else "dc"

    @property
    def repeats_preparation(self) -> bool:
        """Return whether the repeated session has a rule for missing values."""
        plans = () if self.repeated is None else self.repeated.preparation or ()
        return any(plan.missing != "leave" for plan in plans)

    @property
    def parameters(self) -> dict[str, str]:
        """Return the parameters that are filled in, by field name, except match keys."""
        schema = catalogue.protocol(self.protocol).params.model_json_schema()
        names = [f"{PARAM}{parameter.name}" for parameter in parameters_of(schema)]
        return {
            name: self.get(name)
            for name in names
            if name != MATCH_KEYS and self.get(name)
        }

    @property
    def match_keys(self) -> list[str]:
        """Return the match keys, of which a field may contain several, one per line."""
        lines = "\n".join(self.form.get_all(MATCH_KEYS)).splitlines()
        return [line.strip() for line in lines if line.strip()]

    def slots(self) -> list[SlotLine]:
        """Return the filled-in slots, and give each unnamed slot an unused name."""
        names = SlotLine.model_fields
        columns = [self.form.get_all(f"slot.{name}") for name in names]
        lines = [
            SlotLine(**dict(zip(names, map(str.strip, line), strict=True)))
            for line in zip(*columns, strict=False)
        ]
        filled = [line for line in lines if line.name or line.title]
        taken = {line.name for line in filled}
        slots = []
        for number, line in enumerate(filled, 1):
            free = (name for n in count(number) if (name := f"r{n}c1") not in taken)
            name = line.name or next(free)
            taken.add(name)
            slots.append(
                self._place_slot(line.model_copy(update={"name": name}), number)
            )
        return slots

    def _place_slot(self, line: SlotLine, number: int) -> SlotLine:
        place = {"patients": (number, 1), "variables": (1, number)}.get(
            self.get("split")
        )
        if place is None:
            return line
        return line.model_copy(update={"row": str(place[0]), "column": str(place[1])})

    def resolve_path(self, text: str) -> Path:
        """Return the path typed in a field, resolved against the folder of tables."""
        return path_in(self.tables, text)

    @contextmanager
    def errors_at(self, field_name: str) -> Iterator[None]:
        """Record an error of the block at the field it names or at ``field_name``."""
        try:
            yield
        except CoterieError as error:
            self.add_error(error, field_name)

    def add_error(self, error: CoterieError, field_name: str) -> None:
        """Record an error at the field that it names, otherwise at ``field_name``."""
        form_field = self._form_field(error.field, field_name) if error.field else ""
        sentence = error.message
        text = f"{sentence[:1].upper()}{sentence[1:]}" if form_field else error.detail
        self.wrong.setdefault(form_field or field_name, text)

    def _form_field(self, name: str, near: str) -> str:
        """Return the form field of the field that an error names, or "" without one.

        near: the field being parsed, which decides between a parameter and a field of
            the terms that have the same name.
        """
        schema = catalogue.protocol(self.protocol).params.model_json_schema()
        parameters = {p.name: f"{PARAM}{p.name}" for p in parameters_of(schema)}
        others = _form_fields()
        reads_terms = near and not near.startswith(PARAM)
        names = parameters | others if reads_terms else others | parameters
        return names.get(name, "")

    def to_request(self, trusted: TrustedInstitutions) -> dict[str, Any] | None:
        """Return the arguments that describe the terms; None if a field has an error."""
        request: dict[str, Any] = {}
        section_values = read_sections(self._parse_request_field)
        with self.errors_at(f"{PARAM}n_clusters"):
            request["params"], request["evaluation"] = self._parse_params(
                section_values.pop("evaluation", {})
            )
        if not self.get("title"):
            self.wrong.setdefault("title", "Describe the session in one line.")
        with self.errors_at("slots"):
            slots = [_parse_slot(number, p) for number, p in enumerate(self.slots(), 1)]
            request["layout"] = layout_of_slots(slots)
        with self.errors_at("slots"):
            request["expected"] = self._read_expected(trusted)
        covariates = section_values.pop("preparation", {}).get("covariates", "")
        for section, values in section_values.items():
            with self.errors_at(_form_fields()[section]):
                request[section] = build_section(section, values)
        n_errors = len(self.wrong)
        request["dictionary"] = self._read_dictionaries(request.get("layout"))
        if len(self.wrong) == n_errors:
            with self.errors_at("missing"):
                rule: Any = self.get("missing") or None
                request["preparation"] = read_preparation(
                    (), rule, request["dictionary"], self.repeated, covariates
                )
        return None if self.wrong else request

    def _parse_request_field(self, field: RequestField) -> Any:
        """Parse the value of a field, or record an error and return None."""
        name = field.form_name
        text = self.get(name)
        if name == "delete_days":  # without a limit, sessions are never deleted
            text = text or field.caption.default
        if not text or field.info.annotation is not int:
            return text
        try:
            if field.caption.days:
                return _parse_days(text, field)
            return parse_number(text, name)
        except InvalidParameters as error:
            self.add_error(error, name)
            return None

    def _parse_params(self, choice: dict[str, Any]) -> tuple[Params, Evaluation | None]:
        texts = [
            f"{name.removeprefix(PARAM)}={text}"
            for name, text in self.parameters.items()
        ]
        values = add_match_keys(parse_values(tuple(texts)), self.match_keys)
        run_values, runs = parse_runs(values, **choice)
        params = catalogue.parse_params(self.protocol, run_values)
        session_terms.check_required_choices(params)
        return params, runs

    def _read_expected(self, trusted: TrustedInstitutions) -> dict[str, str]:
        keys = trusted.keys_by_name()
        texts = []
        for number, slot in enumerate(self.slots(), 1):
            if slot.expected and slot.expected not in keys:
                raise InvalidParameters(
                    f"Place {number}: that institution is not known."
                )
            if slot.expected:
                texts.append(f"{slot.name}={slot.expected}")
        return self._earlier_keys(trusted) | read_expected_keys(tuple(texts), trusted)

    def _earlier_keys(self, trusted: TrustedInstitutions) -> dict[str, str]:
        if self.repeated is None:
            return {}
        names, slots = trusted.names_by_key(), {slot.name for slot in self.slots()}
        return {
            slot: key
            for slot, key in self.repeated.identities.slots.items()
            if slot in slots and key not in names
        }

    def _read_dictionaries(self, layout: Layout | None) -> list[Schema] | None:
        groups = range(1, 1 + (1 if layout is None else layout.n_column_groups))
        schemas: dict[int, Schema] = {}
        for number in groups:
            field_name = "dictionary" if self.get(f"dictionary.{number}") else "table"
            with self.errors_at(f"{field_name}.{number}"):
                schema = self._read_dictionary(number)
                if schema is not None:
                    schemas[number] = schema
        if not schemas:
            return None
        for number in groups:
            if number not in schemas:
                self.wrong.setdefault(
                    f"table.{number}",
                    "Other column groups have a dictionary: name one here too.",
                )
        return [schemas[number] for number in groups if number in schemas]

    def _read_dictionary(self, number: int) -> Schema | None:
        file = self.get(f"dictionary.{number}")
        table = TableDraft.from_form(self.form, number, self.tables)
        if file and table.path is not None:
            raise InvalidParameters("Name a dictionary or a table, not both.")
        if file:
            return read_schema(self.resolve_path(file))
        if table.path is None and not table.rows:
            dictionary = () if self.repeated is None else self.repeated.dictionary or ()
            return dictionary[number - 1] if number <= len(dictionary) else None
        if table.is_listed and (faults := self._variable_faults(table)):
            for row, fault in faults.items():
                name = table.rows[row - 1]["name"]
                self.wrong[f"variable.{number}.{row}"] = f"{name}: {fault}"
            return None
        schema, omitted = table.dictionary()
        self.left_out.extend(omitted)
        return schema

    def _variable_faults(self, table: TableDraft) -> dict[int, str]:
        draft = table.draft()
        faults = draft.faults()
        if faults or self.get("missing") != "median":
            return faults
        fields = enumerate((field.to_field() for field in draft.variables), 1)
        return {
            row: "the median needs a minimum and a maximum"
            for row, field in fields
            if field.role == "cluster"
            and not (field.is_category or field.type == "boolean")
            and not -inf < field.bounds[0] < field.bounds[1] < inf
        }


def fill_form(terms: Terms, names: Mapping[str, str]) -> Form:
    """Return a form that is filled in with the settings of an earlier session.

    names: the names of the trusted institutions, by public key.
    """
    fields = {"from": [terms.session], "protocol": [terms.protocol.name]}
    values = earlier_params(terms, terms.protocol.name)
    match_keys = values.get("alignment", {}).pop("match_keys", ())
    fields[MATCH_KEYS] = ["\n".join(match_keys)]
    for name, value in _flatten(PARAM, values):
        fields[name] = [value if isinstance(value, str) else json.dumps(value)]
    if terms.evaluation is not None:
        numbers = ", ".join(map(str, terms.evaluation.n_clusters))
        fields[f"{PARAM}n_clusters"] = [numbers]
    for request_field in request_fields():
        value = getattr(
            getattr(terms, request_field.section),
            request_field.name or "__class__",
            None,
        )
        if request_field.name and value is not None:
            fields[request_field.form_name] = [
                f"{value / DAY:g}" if request_field.caption.days else f"{value}"
            ]
    if (covariates := covariates_of(terms.preparation or ())) is not None:
        fields["harmonise"] = [covariates]
    slots, keys = terms.layout.slots, terms.identities.slots
    fields["slot.name"] = [slot.name for slot in slots]
    fields["slot.title"] = [slot.title for slot in slots]
    fields["slot.row"] = [str(slot.row + 1) for slot in slots]
    fields["slot.column"] = [str(slot.column + 1) for slot in slots]
    fields["slot.expected"] = [names.get(keys.get(s.name, ""), "") for s in slots]
    return Form(fields)


def _flatten(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _parse_days(text: str, field: RequestField) -> int:
    """Convert days to seconds; raise :class:`InvalidParameters` if the text is invalid."""
    minimum, maximum = field.caption.least or 0, field.caption.most or 0
    try:
        seconds = round(float(text.replace(",", ".")) * DAY)
    except (ValueError, OverflowError):
        seconds = -1
    if not minimum <= seconds <= maximum:
        sentence = f"a number of days up to {maximum // DAY:,}, such as 7 or 0.5."
        raise InvalidParameters(sentence, field=field.form_name)
    return seconds


@cache
def _form_fields() -> dict[str, str]:
    """Map names used in errors to form fields; a section's name maps to its first field."""
    fields = {"slots": "slots"}
    for request_field in request_fields():
        for name in (
            request_field.form_name,
            request_field.name,
            request_field.section,
        ):
            fields.setdefault(name, request_field.form_name)
    return fields


def _parse_slot(number: int, line: SlotLine) -> dict[str, Any]:
    if not re.fullmatch(NAME_PATTERN, line.name):
        raise InvalidParameters(
            f"Place {number}: its name may contain a-z, 0-9, '.', '_' and '-', and "
            "begins with a letter or digit."
        )
    return {
        "name": line.name,
        "title": line.title,
        "row": parse_number(line.row, f"Place {number}, rows") - 1,
        "column": parse_number(line.column, f"Place {number}, columns") - 1,
    }
