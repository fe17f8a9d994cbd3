"""What a form says of a session that is not open yet, and what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
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
    earlier_values,
    layout_of,
    read_expected,
    read_preparation,
    read_runs,
    read_values,
    with_match_keys,
)
from party_sdk.desk.coordinator.context import parse_number
from party_sdk.desk.dictionary_drafts import TableDraft
from party_sdk.desk.responses import Form
from party_sdk.home.identities import TrustedInstitutions

PARAM: Final = "param."
MATCH_KEYS: Final = f"{PARAM}alignment.match_keys"
SPLITS: Final = {
    "patients": "Other people at each party, the same variables",
    "variables": "The same people at each party, other variables",
    "both": "People and variables are both split",
}
"""How the data of the parties are split, as the form asks."""
LINKING: Final = f"{PARAM}alignment."
"""Parameters that link rows: they are asked for beside the places."""
DAY: Final = 86_400
SCREENS: Final = ("What it is for", "Who takes part", "Variables")
"""Of the form, one after the other; the terms follow, to be checked."""
_NUMBERS: Final = {"words": 1, "runs": 1, "limits": 2, "gaps": 3, "results": 3}
_OWN: Final = frozenset({"token", "do", "screen", "folder", "drawn", "seed", "digest"})
"""Fields that belong to one page alone."""


def screen_of(name: str) -> int:
    """Return on which screen a field stands, from 1; 0 where it stands on none."""
    head = name.partition(".")[0]
    if name.startswith(LINKING) or head in {"slot", "slots", "split", "people"}:
        return 2
    if head in {"protocol", "param"}:
        return 1
    if head in {
        *("dictionary", "table", "elsewhere", "ids", "levels", "listed", "variable"),
    }:
        return 3
    groups = {each.form_name: each.caption.group for each in request_fields()}
    return _NUMBERS.get(groups.get(name) or "", 0)


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What a form asks for: what a coordinator draws terms up from.

    sections: what else terms say, and who is expected.
    left_out: columns of tables that no dictionary describes.
    """

    params: Params
    layout: Layout
    sections: dict[str, Any]
    left_out: Sequence[str]


@dataclass(frozen=True, slots=True)
class Draft:
    """A form, and what is wrong with it, by field.

    tables: where relative paths start.
    earlier: the terms of the session that is repeated, if one is.
    """

    form: Form
    tables: Path
    earlier: Terms | None = None
    wrong: dict[str, str] = field(default_factory=dict)

    def one(self, name: str) -> str:
        """Return what stands in a field, without blanks around it."""
        return self.form.one(name).strip()

    def hidden(self, screen: int) -> Iterator[tuple[str, str]]:
        """Yield what other screens said, line by line, for the form of this one."""
        for name, values in self.form.fields.items():
            if name not in _OWN and screen_of(name) != screen:
                for value in values:
                    yield from ((name, line) for line in value.splitlines() or [""])

    def wrong_screen(self, last: int) -> int | None:
        """Return the first screen of those up to one on which something is wrong."""
        screens = [screen_of(name) or last for name in self.wrong]
        return min((n for n in screens if n <= last), default=None)

    @property
    def protocol(self) -> str:
        """Return the protocol that is chosen; the usual one where none is."""
        named = self.one("protocol")
        return named if named in catalogue.catalogue() else "dc"

    @property
    def parameters(self) -> dict[str, str]:
        """Return what stands in the fields of parameters, but for the match keys."""
        schema = catalogue.protocol(self.protocol).params.model_json_schema()
        names = [f"{PARAM}{each.name}" for each in parameters_of(schema)]
        return {
            name: self.one(name)
            for name in names
            if name != MATCH_KEYS and self.one(name)
        }

    @property
    def match_keys(self) -> list[str]:
        """Return the match keys that were typed, in one field or several, one a line."""
        lines = "\n".join(self.form.all(MATCH_KEYS)).splitlines()
        return [line.strip() for line in lines if line.strip()]

    def places(self) -> list[SlotLine]:
        """Return the lines of the table of places that are not empty."""
        names = SlotLine.model_fields
        columns = [self.form.all(f"slot.{name}") for name in names]
        lines = [
            SlotLine(**dict(zip(names, map(str.strip, line), strict=True)))
            for line in zip(*columns, strict=False)
        ]
        kept = [line for line in lines if line.name or line.title]
        return [self._place(line, number) for number, line in enumerate(kept, 1)]

    def _place(self, line: SlotLine, number: int) -> SlotLine:
        """Return a line at the place that the split gives it, else at its own."""
        along = {"patients": (number, 1), "variables": (1, number)}.get(
            self.one("split")
        )
        if along is None:
            return line
        return line.model_copy(update={"row": str(along[0]), "column": str(along[1])})

    def path(self, text: str) -> Path:
        """Return where a file is that was named."""
        return self.tables / Path(text).expanduser()

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Note a refusal at the field that it names, or at this one."""
        try:
            yield
        except CoterieError as error:
            self.note(error, place)

    def note(self, error: CoterieError, place: str) -> None:
        """Note a refusal at the field that it names, or at ``place``."""
        known = self._field(error.field) if error.field else ""
        said = error.said
        text = f"{said[:1].upper()}{said[1:]}" if known else error.detail
        self.wrong.setdefault(known or place, text)

    def _field(self, named: str) -> str:
        """Return the field of what a refusal names; empty if it is none."""
        schema = catalogue.protocol(self.protocol).params.model_json_schema()
        parameters = {each.name for each in parameters_of(schema)}
        if named in parameters:
            return f"{PARAM}{named}"
        return _form_names().get(named, "")

    def to_request(self, known: TrustedInstitutions) -> DraftRequest | None:
        """Return what the form asks for; None if something of it is wrong."""
        found: dict[str, Any] = {}
        sections: dict[str, Any] = {}
        left_out: list[str] = []
        said = read_sections(self._value)
        with self.at(f"{PARAM}n_clusters"):
            found["params"], sections["evaluation"] = self._params(
                said.pop("evaluation", {})
            )
        if not self.one("title"):
            self.wrong.setdefault("title", "Say in a line what the session is.")
        with self.at("slots"):
            slots = [_slot(number, p) for number, p in enumerate(self.places(), 1)]
            found["layout"] = layout_of(slots)
        with self.at("slots"):
            sections["expected"] = self._read_expected(known)
        kept = said.pop("preparation", {}).get("covariates", "")
        for section, values in said.items():
            with self.at(_form_names()[section]):
                sections[section] = build_section(section, values)
        before = len(self.wrong)
        dictionary = self._dictionary(found.get("layout"), left_out)
        sections["dictionary"] = dictionary
        if len(self.wrong) == before:
            with self.at("missing"):
                rule: Any = self.one("missing") or None
                sections["preparation"] = read_preparation(
                    (), rule, dictionary, self.earlier, kept
                )
        if self.wrong:
            return None
        return DraftRequest(**found, sections=sections, left_out=left_out)

    def _value(self, field: RequestField) -> Any:
        """Return what stands in a field; None where that is wrong, which is noted."""
        name = field.form_name
        text = self.one(name)
        if name == "delete_days":  # what no terms limit is kept for ever
            text = text or field.caption.usual
        if not text or field.info.annotation is not int:
            return text
        try:
            if field.caption.days:
                return _parse_days(text, field)
            return parse_number(text, name)
        except InvalidParameters as error:
            self.note(error, name)
            return None

    def _params(self, choice: dict[str, Any]) -> tuple[Params, Evaluation | None]:
        texts = [
            f"{name.removeprefix(PARAM)}={text}"
            for name, text in self.parameters.items()
        ]
        said = with_match_keys(read_values(tuple(texts)), self.match_keys)
        values, runs = read_runs(said, **choice)
        params = catalogue.parse_params(self.protocol, values)
        session_terms.check_named(params)
        return params, runs

    def _read_expected(self, known: TrustedInstitutions) -> dict[str, str]:
        named = known.read()
        texts = []
        for number, place in enumerate(self.places(), 1):
            if place.expected and place.expected not in named:
                raise InvalidParameters(
                    f"Place {number}: that institution is not known."
                )
            if place.expected:
                texts.append(f"{place.name}={place.expected}")
        return self._earlier_keys(known) | read_expected(tuple(texts), known)

    def _earlier_keys(self, known: TrustedInstitutions) -> dict[str, str]:
        """Return the keys of earlier places that no card here names."""
        if self.earlier is None:
            return {}
        names, places = known.names(), {place.name for place in self.places()}
        return {
            slot: key
            for slot, key in self.earlier.identities.slots.items()
            if slot in places and key not in names
        }

    def _dictionary(
        self, layout: Layout | None, left_out: list[str]
    ) -> list[Schema] | None:
        """Return the dictionaries of all column groups; None where none is said."""
        groups = range(1, 1 + (1 if layout is None else layout.n_column_groups))
        found: dict[int, Schema] = {}
        for number in groups:
            named = "dictionary" if self.one(f"dictionary.{number}") else "table"
            with self.at(f"{named}.{number}"):
                schema = self._one_dictionary(number, left_out)
                if schema is not None:
                    found[number] = schema
        if not found:
            return None
        for number in groups:
            if number not in found:
                self.wrong.setdefault(
                    f"table.{number}",
                    "The other columns have a dictionary: say one for these too.",
                )
        return [found[number] for number in groups if number in found]

    def _one_dictionary(self, number: int, left_out: list[str]) -> Schema | None:
        from party_sdk.tables.variables import read_schema

        file = self.one(f"dictionary.{number}")
        table = TableDraft.of(self.form, number, self.tables)
        if file and table.path is not None:
            raise InvalidParameters("Name a dictionary or a table, not both.")
        if file:
            return read_schema(self.path(file))
        if table.path is None and not table.rows:
            before = () if self.earlier is None else self.earlier.dictionary or ()
            return before[number - 1] if number <= len(before) else None
        if table.is_listed and (faults := self._row_faults(table)):
            for row, what in faults.items():
                name = table.rows[row - 1]["name"]
                self.wrong[f"variable.{number}.{row}"] = f"{name}: {what}"
            return None
        schema, left = table.dictionary()
        left_out += left
        return schema

    def _row_faults(self, table: TableDraft) -> dict[int, str]:
        """Return what is wrong with rows of variables, counted from 1: all at once."""
        drafted = table.draft()
        faults = drafted.faults()
        if faults or self.one("missing") != "median":
            return faults
        fields = enumerate((each.field() for each in drafted.variables), 1)
        return {
            row: "the median needs a minimum and a maximum"
            for row, each in fields
            if each.role == "cluster"
            and not (each.is_category or each.type == "boolean")
            and not -inf < each.bounds[0] < each.bounds[1] < inf
        }


def fill_form(terms: Terms, names: Mapping[str, str]) -> Form:
    """Return the form of a new session, filled as an earlier one.

    names: of known institutions, by key.
    """
    fields = {"from": [terms.session], "protocol": [terms.protocol.name]}
    values = earlier_values(terms, terms.protocol.name)
    match_keys = values.get("alignment", {}).pop("match_keys", ())
    fields[MATCH_KEYS] = ["\n".join(match_keys)]
    for name, value in _flatten(PARAM, values):
        fields[name] = [value if isinstance(value, str) else json.dumps(value)]
    if terms.evaluation is not None:
        numbers = ", ".join(map(str, terms.evaluation.n_clusters))
        fields[f"{PARAM}n_clusters"] = [numbers]
    for each in request_fields():
        value = getattr(getattr(terms, each.section), each.name or "__class__", None)
        if each.name and value is not None:
            fields[each.form_name] = [
                f"{value / DAY:g}" if each.caption.days else f"{value}"
            ]
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
    """Return a number of days as seconds; :class:`InvalidParameters` names it else."""
    least, most = field.caption.least or 0, field.caption.most or 0
    try:
        seconds = round(float(text.replace(",", ".")) * DAY)
    except (ValueError, OverflowError):
        seconds = -1
    if not least <= seconds <= most:
        said = f"a number of days up to {most // DAY:,}, such as 7 or 0.5."
        raise InvalidParameters(said, field=field.form_name)
    return seconds


@cache
def _form_names() -> dict[str, str]:
    """Return the field of the form of what a refusal may name: a section is its first."""
    found = {"slots": "slots"}
    for each in request_fields():
        for name in (each.form_name, each.name, each.section):
            found.setdefault(name, each.form_name)
    return found


def _slot(number: int, place: SlotLine) -> dict[str, Any]:
    """Return a place as a layout has it; row and column count from 0 there."""
    if not re.fullmatch(NAME_PATTERN, place.name):
        raise InvalidParameters(
            f"Place {number}: its name has a-z, 0-9, '.', '_' and '-', and begins with a "
            "letter or digit."
        )
    return {
        "name": place.name,
        "title": place.title,
        "row": parse_number(place.row, f"Place {number}, rows") - 1,
        "column": parse_number(place.column, f"Place {number}, columns") - 1,
    }
