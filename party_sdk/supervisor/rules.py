"""``[[orders]]`` of ``policy.toml``: which table an invitation gets."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.validation_messages import explain
from clustering_protocols.terms.terms import Terms
from party_sdk.home.policy_files import ORDERS, policy_file
from party_sdk.supervisor.models import Order, OrderedTable
from party_sdk.tables.dictionaries import read_schema
from party_sdk.tables.mapping import read_mapping, write_mapping


class OrderRule(BaseModel):
    """One table of the section; its keys are those of the options of ``party run``.

    coordinator: the name of a trusted card, or a public key: who invites.
    title, slot: patterns such as ``Wards *``; everything by default.
    protocol: one or several; all by default.
    data: the table; beside ``policy.toml`` unless it is absolute.
    labels, report: where to write; ``{session}`` and ``{slot}`` stand for those.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    coordinator: str
    title: str = "*"
    slot: str = "*"
    protocol: tuple[str, ...] = ()
    data: str
    id_column: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    dictionary: str | None = None
    mapping: str | None = None
    allow: tuple[str, ...] = ()
    long: str | None = None
    objects: str | None = None
    choices: dict[str, Any] = {}
    labels: str | None = None
    report: str | None = None
    confirm: bool = False

    @field_validator("protocol", "id_column", "columns", "csv", "allow", mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        """Return one text as a list of one."""
        return [given] if isinstance(given, str) else given

    def covers(self, terms: Terms, slot: str, known: Mapping[str, str]) -> bool:
        """Return whether an invitation to these terms gets this table.

        known: the public key of each name whose card was trusted.
        """
        key = known.get(self.coordinator, self.coordinator)
        return (
            terms.identities.coordinator == key
            and fnmatchcase(terms.title, self.title)
            and fnmatchcase(slot, self.slot)
            and (not self.protocol or terms.protocol.name in self.protocol)
        )

    def apply_to(self, order: Order, home: Path, session: str, slot: str) -> Order:
        """Return an order with the table and the outputs of this rule."""
        table = OrderedTable(
            path=self._data(home),
            id_column=self.id_column,
            columns=self.columns,
            csv=self.csv,
            dictionary=None
            if self.dictionary is None
            else read_schema(home / self.dictionary),
            mapping=None
            if self.mapping is None
            else write_mapping(read_mapping(home / self.mapping)).decode(),
            allow=self.allow,
            long_form=self.long,
            objects_file=None if self.objects is None else home / self.objects,
        )

        def place(pattern: str | None) -> Path | None:
            if pattern is None:
                return None
            named = pattern.replace("{session}", session).replace("{slot}", slot)
            return (home / named).absolute()

        update = {
            "table": table,
            "choices": self.choices,
            "labels": place(self.labels),
            "report": place(self.report),
            "confirm": self.confirm,
        }
        return order.model_copy(update=update)

    def _data(self, home: Path) -> str:
        return self.data if "://" in self.data else str((home / self.data).absolute())


def read_rules(home: Path) -> Sequence[OrderRule]:
    """Return the rules of a home, in their order; the first that covers counts.

    Raises InvalidParameters: with the number and the key of the table that cannot be
        read.
    """
    path = policy_file(home)
    if not path.exists():
        return []
    try:
        said = tomllib.loads(path.read_bytes().decode()).get(ORDERS, [])
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InvalidParameters(f"{path.name} is no TOML.") from None
    tables = said if isinstance(said, list) else [said]
    return [_rule(table, number) for number, table in enumerate(tables, 1)]


def _rule(table: Any, number: int) -> OrderRule:
    try:
        return OrderRule.model_validate(table)
    except ValidationError as error:
        raise InvalidParameters(
            f"policy.toml, [[{ORDERS}]] number {number}: {explain(error)}"
        ) from None
