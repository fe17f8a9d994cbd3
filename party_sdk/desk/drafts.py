"""What a form says of a session that is not open yet, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustering_protocols import registry
from clustering_protocols.contract import Params
from clustering_protocols.errors import CoterieError, InvalidParameters
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.limits import NAME_PATTERN
from clustering_protocols.schema import Schema
from clustering_protocols.terms import About, Guards, Layout
from coterie_pages.fields import parameters_of
from party_sdk.desk.answers import Form
from party_sdk.desk.coordinating import numbered
from party_sdk.desk.table_drafts import TableDraft
from party_sdk.identities import Acquaintances
from party_sdk.session_values import (
    layout_of,
    read_about,
    read_deadlines,
    read_expected,
    read_preparation,
    read_release,
    read_values,
)
from party_sdk.trials.runs import read_runs
from party_sdk.wishes import Wishes

PARAM: Final = "param."
DAY: Final = 86_400
_MOST_DAYS: Final = 366
_PLACES: Final = {
    "min_cluster_rows": "profile_rows",
    "release": "profiles",
    "preparation": "missing",
}
"""Where a value stands in the form that has another name in the terms."""


class Place(NamedTuple):
    """A line of the table of places, as it was typed."""

    name: str
    title: str
    row: str
    column: str
    expected: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a form asks for: what a coordinator draws terms up from.

    left_out: columns of tables that no dictionary describes.
    """

    about: About
    params: Params
    layout: Layout
    runs: Evaluation | None
    wishes: Wishes
    left_out: Sequence[str]


@dataclass(frozen=True, slots=True)
class Draft:
    """A form, and what is wrong with it, by field.

    tables: from where a path without a beginning counts.
    """

    form: Form
    tables: Path
    wrong: dict[str, str] = field(default_factory=dict)

    def one(self, name: str) -> str:
        """Return what stands in a field, without blanks around it."""
        return self.form.one(name).strip()

    @property
    def protocol(self) -> str:
        """Return the protocol that is chosen; the usual one where none is."""
        named = self.one("protocol")
        return named if named in registry.catalogue() else "dc"

    @property
    def parameters(self) -> dict[str, str]:
        """Return what stands in the fields of parameters of this protocol."""
        schema = registry.protocol(self.protocol).params.model_json_schema()
        names = [f"{PARAM}{each.name}" for each in parameters_of(schema)]
        return {name: self.one(name) for name in names if self.one(name)}

    def places(self) -> list[Place]:
        """Return the lines of the table of places that are not empty."""
        columns = [self.form.all(f"slot.{name}") for name in Place._fields]
        lines = [Place(*map(str.strip, line)) for line in zip(*columns, strict=False)]
        return [line for line in lines if line.name or line.title]

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
        named, found, said = error.detail.partition(": ")
        known = self._field(named) if found else ""
        text = f"{said[:1].upper()}{said[1:]}" if known else error.detail
        self.wrong.setdefault(known or place, text)

    def _field(self, named: str) -> str:
        """Return the field of what a refusal names; empty if it is none."""
        schema = registry.protocol(self.protocol).params.model_json_schema()
        parameters = {each.name for each in parameters_of(schema)}
        if named in parameters:
            return f"{PARAM}{named}"
        known = _PLACES.get(named, named)
        return known if known in _FIELDS else ""

    def asked(self, known: Acquaintances) -> Asked | None:
        """Return what the form asks for; None if something of it is wrong."""
        found: dict[str, Any] = {}
        left_out: list[str] = []
        with self.at("title"):
            found["about"] = self._about()
        with self.at(f"{PARAM}n_clusters"):
            found["params"], found["runs"] = self._params()
        with self.at("slots"):
            slots = [_slot(number, p) for number, p in enumerate(self.places(), 1)]
            found["layout"] = layout_of(slots)
        wishes: Wishes = {}
        with self.at("slots"):
            wishes["expected"] = self._expected(known)
        with self.at("join_days"):
            wishes["deadlines"] = read_deadlines(
                self._seconds("join_days"), self._seconds("answer_days")
            )
        with self.at("minimum_rows"):
            least = self._number("minimum_rows")
            wishes["guards"] = None if least is None else Guards(minimum_rows=least)
        with self.at("profiles"):
            readers: Any = self.one("profiles") or None
            wishes["release"] = read_release(readers, self._number("profile_rows"))
        dictionary = self._dictionary(found.get("layout"), left_out)
        wishes["dictionary"] = dictionary
        with self.at("missing"):
            rule: Any = self.one("missing") or None
            wishes["preparation"] = read_preparation((), rule, dictionary)
        if self.wrong:
            return None
        wishes["evaluation"] = found["runs"]
        return Asked(**found, wishes=wishes, left_out=left_out)

    def _about(self) -> About:
        names = ("title", "purpose", "legal_basis", "contact")
        words = {name: self.one(name) for name in names}
        if not words["title"]:
            raise InvalidParameters("title: say in a line what the session is.")
        return read_about(words)

    def _params(self) -> tuple[Params, Evaluation | None]:
        texts = [
            f"{name.removeprefix(PARAM)}={text}"
            for name, text in self.parameters.items()
        ]
        choose, within = self.one("choose") or None, self._seconds("choose_days")
        values, runs = read_runs(read_values(tuple(texts)), choose, within)
        return registry.parse_params(self.protocol, values), runs

    def _expected(self, known: Acquaintances) -> dict[str, str]:
        named = known.read()
        texts = []
        for number, place in enumerate(self.places(), 1):
            if place.expected and place.expected not in named:
                raise InvalidParameters(
                    f"Place {number}: that institution is not known."
                )
            if place.expected:
                texts.append(f"{place.name}={place.expected}")
        return read_expected(tuple(texts), known)

    def _dictionary(
        self, layout: Layout | None, left_out: list[str]
    ) -> list[Schema] | None:
        """Return the dictionaries of all column groups; None where none is said."""
        groups = range(1, 1 + (1 if layout is None else layout.n_column_groups))
        found: dict[int, Schema] = {}
        for number in groups:
            with self.at(f"dictionary.{number}"):
                schema = self._one_dictionary(number, left_out)
                if schema is not None:
                    found[number] = schema
        if not found:
            return None
        for number in groups:
            if number not in found:
                self.wrong.setdefault(
                    f"dictionary.{number}",
                    "The other columns have a dictionary: say one for these too.",
                )
        return [found[number] for number in groups if number in found]

    def _one_dictionary(self, number: int, left_out: list[str]) -> Schema | None:
        from party_sdk.tables.dictionaries import read_schema

        file, table = self.one(f"dictionary.{number}"), self.one(f"table.{number}")
        if file and table:
            raise InvalidParameters("Name a dictionary or a table, not both.")
        if file:
            return read_schema(self.path(file))
        if not table:
            return None
        schema, left = TableDraft.of(self.form, number, self.tables).dictionary()
        left_out += left
        return schema

    def _seconds(self, name: str) -> int | None:
        """Return a number of days as seconds; None where nothing is said."""
        text = self.one(name).replace(",", ".")
        if not text:
            return None
        try:
            seconds = round(float(text) * DAY)
        except (ValueError, OverflowError):
            seconds = 0
        if not 1 <= seconds <= _MOST_DAYS * DAY:
            raise InvalidParameters(
                f"{name}: a number of days up to {_MOST_DAYS}, such as 7 or 0.5."
            )
        return seconds

    def _number(self, name: str) -> int | None:
        return numbered(self.one(name), name) if self.one(name) else None


_FIELDS: Final = frozenset(
    {
        "title",
        "purpose",
        "legal_basis",
        "contact",
        "choose",
        "choose_days",
        "slots",
        "join_days",
        "answer_days",
        "minimum_rows",
        "missing",
        "profiles",
        "profile_rows",
    }
)


def _slot(number: int, place: Place) -> dict[str, Any]:
    """Return a place as a layout has it; row and column count from 0 there."""
    if not re.fullmatch(NAME_PATTERN, place.name):
        raise InvalidParameters(
            f"Place {number}: its name has a-z, 0-9, '.', '_' and '-', and begins with a "
            "letter or digit."
        )
    return {
        "name": place.name,
        "title": place.title,
        "row": numbered(place.row, f"Place {number}, rows") - 1,
        "column": numbered(place.column, f"Place {number}, columns") - 1,
    }
