"""The layout and the terms of a session.

Terms are fixed when the session is created and can be read before joining. Terms are an
exact byte string: each side hashes the bytes that it received and never serialises them
again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from clustering_protocols.common.errors import VersionMismatch
from clustering_protocols.common.limits import (
    CONTROLS,
    MAX_GROUP_SLOTS,
    MINIMUM_MEMBERS,
    NAME_PATTERN,
)
from clustering_protocols.common.values import Section, Value
from clustering_protocols.secrecy.identities import Key
from clustering_protocols.terms.canonical import parse_as
from clustering_protocols.terms.captions import (
    CONTACT,
    EVALUATION,
    LEGAL_BASIS,
    MINIMUM_ROWS,
    PREPARATION,
    PURPOSE,
    RECRUITING,
    RELEASE,
    RETENTION,
    ROLES,
    ROUND,
    TITLE,
)
from clustering_protocols.terms.preparation import (
    ColumnPlan,
    Preparation,
    Ranges,
    build_column_plans,
)
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.sections import Evaluation, Release, Retention

TERMS_VERSION: Final = 2
SESSIONS_IN_MEMORY: Final = 32  # few, because terms of 20,000 columns take 16 MB
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
_Seconds = Annotated[int, Field(ge=1, le=366 * 86_400)]
Audience = Literal["all", "row", "column", "slot"]
Text = Annotated[str, Field(max_length=200, pattern=rf"^[^{CONTROLS}]*$")]


class Words(Value):
    """Descriptive texts of a session, which appear in its terms and on the terms sheet."""

    title: Annotated[Text, TITLE] = Field(
        default="", description="One line, no control characters."
    )
    purpose: Annotated[Text, PURPOSE] = Field(
        default="", description="What the labels are for."
    )
    legal_basis: Annotated[Text, LEGAL_BASIS] = Field(
        default="", description="The legal basis, e.g. a contract."
    )
    roles: Annotated[Text, ROLES] = Field(
        default="", description="Who is the controller and who is the processor."
    )
    contact: Annotated[Text, CONTACT] = Field(default="", description="Whom to ask.")


class About(Words, Section):
    """The texts that describe a session."""


class Slot(Section):
    """A slot for one party, with its row group and column group, counted from 0."""

    name: Name = Field(description="Name of this slot, e.g. hospital-a.")
    title: Text = Field(default="", description="Name of the participant, for readers.")
    row: int = Field(
        ge=0, lt=10_000, description="Row group: slots with the same rows."
    )
    column: int = Field(
        ge=0, lt=10_000, description="Column group: slots with the same features."
    )


class Layout(Value):
    """The slots of a session, ordered by row group, then by column group."""

    slots: tuple[Slot, ...] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _check(self) -> Self:
        cells = [(slot.row, slot.column) for slot in self.slots]
        if cells != sorted(set(cells)):
            raise ValueError("slots must be ordered by row, then column, one per cell")
        if len({slot.name for slot in self.slots}) != len(self.slots):
            raise ValueError("two slots have the same name")
        sizes = [Counter(groups) for groups in zip(*cells, strict=True)]
        for kind, n_slots in zip(("row", "column"), sizes, strict=True):
            if gaps := set(range(len(n_slots))) - n_slots.keys():
                raise ValueError(
                    f"{kind} groups are counted 1, 2, 3 … without gaps, but group "
                    f"{min(gaps) + 1} is missing (over HTTP they are counted from 0)"
                )
        if sum(max(n_slots.values()) for n_slots in sizes) > MAX_GROUP_SLOTS:
            raise ValueError(
                f"a row group and a column group have at most {MAX_GROUP_SLOTS} slots "
                "together: their envelopes share one message"
            )
        return self

    @classmethod
    def lattice(cls, row_groups: int, column_groups: int = 1) -> Self:
        """Return the full grid of row groups × column groups, named ``r1c1 …``."""
        return cls(
            slots=tuple(
                Slot(name=f"r{row + 1}c{column + 1}", row=row, column=column)
                for row in range(row_groups)
                for column in range(column_groups)
            )
        )

    @property
    def n_row_groups(self) -> int:
        """Return the number of row groups."""
        return 1 + max(slot.row for slot in self.slots)

    @property
    def n_column_groups(self) -> int:
        """Return the number of column groups."""
        return 1 + max(slot.column for slot in self.slots)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of all slots in order; the first one is the leader."""
        return tuple(slot.name for slot in self.slots)

    @property
    def is_regular(self) -> bool:
        """Return whether each pair of a row group and a column group has a slot."""
        return len(self.slots) == self.n_row_groups * self.n_column_groups

    def audience_groups(self, audience: Audience) -> list[tuple[str, ...]]:
        """Return the names of all slots, divided into groups according to the audience."""
        groups = {
            "all": (self.names,),
            "row": self.row_groups,
            "column": self.column_groups,
        }
        return list(groups.get(audience) or ((name,) for name in self.names))

    def slot(self, name: str) -> Slot:
        """Return the slot of this name; raise :class:`KeyError` if there is none."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Slot]:
        return {slot.name: slot for slot in self.slots}

    def row_group(self, row: int) -> tuple[str, ...]:
        """Return the names of the slots of a row group, in column order."""
        return self.row_groups[row]

    def can_pool(self, column: int) -> bool:
        """Return whether a column group has enough members for masked sums."""
        return len(self.column_group(column)) >= MINIMUM_MEMBERS

    def column_group(self, column: int) -> tuple[str, ...]:
        """Return the names of the slots of a column group, in row order."""
        return self.column_groups[column]

    @cached_property
    def row_groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of the slots of each row group, in column order."""
        return _by_group((slot.row, slot.name) for slot in self.slots)

    @cached_property
    def column_groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of the slots of each column group, in row order."""
        return _by_group((slot.column, slot.name) for slot in self.slots)


def _by_group(numbered_names: Iterable[tuple[int, str]]) -> tuple[tuple[str, ...], ...]:
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for number, name in numbered_names:
        groups[number].append(name)
    return tuple(tuple(groups[number]) for number in range(len(groups)))


class Identities(Section):
    """The public keys of the institutions of a session (Ed25519, hex)."""

    coordinator: Key | None = Field(
        default=None, description="Key that signs the terms."
    )
    analyst: Key | None = Field(
        default=None, description="Key that signs receipts and the audit."
    )
    slots: dict[Name, Key] = Field(
        default={}, description="Keys of institutions by slot; other slots are open."
    )


class Deadlines(Value):
    """The time limits for joining and for each round, in seconds."""

    recruiting: Annotated[_Seconds, RECRUITING] = Field(
        default=7 * 86_400, description="Seconds for all to join."
    )
    round: Annotated[_Seconds, ROUND] = Field(
        default=86_400, description="Seconds for answers in each round."
    )


class Guards(Value):
    """Minimum sizes that every party enforces itself; a party may require more."""

    minimum_rows: Annotated[int, MINIMUM_ROWS] = Field(
        default=10, ge=1, description="Rows of each party."
    )


class ProtocolRequest(Value):
    """The name of a protocol, and parameters that differ from the defaults."""

    name: Name
    params: dict[str, Any] = Field(default={})


class ProtocolChoice(ProtocolRequest, Section):
    """The name and version of a protocol, and parameters other than the defaults."""

    version: int


class SessionRequest(Value):
    """A coordinator's request, from which ``draw_up_terms`` creates the terms.

    dictionary: the schema of each column group, in order. Parties find their columns by
        name, in whatever order.
    preparation: how these columns become those that are clustered, one for each
        dictionary.
    """

    about: About = About()
    protocol: ProtocolRequest
    layout: Layout
    identities: Identities = Identities()
    seed: int = Field(ge=0, lt=2**53, description="Seed of random starts.")
    deadlines: Deadlines = Deadlines()
    guards: Guards = Guards()
    dictionary: tuple[Schema, ...] | None = Field(
        default=None, description="Data dictionary of each column group."
    )
    preparation: Annotated[tuple[Preparation, ...] | None, PREPARATION] = Field(
        default=None, description="How to prepare these columns for clustering."
    )
    evaluation: Annotated[Evaluation | None, EVALUATION] = Field(
        default=None,
        description="Several numbers of clusters, of which the protocol's own is the "
        "largest, and how one of them is chosen.",
    )
    release: Annotated[Release | None, RELEASE] = Field(
        default=None, description="What the session releases besides labels."
    )
    retention: Annotated[Retention | None, RETENTION] = Field(
        default=None, description="How long the analyst keeps data of the session."
    )

    @field_validator("dictionary")
    @classmethod
    def _drop_unused_fields(
        cls, dictionary: tuple[Schema, ...] | None
    ) -> tuple[Schema, ...] | None:
        return dictionary and tuple(schema.used for schema in dictionary)

    @property
    def sections(self) -> dict[str, Any]:
        """Return all sections except the protocol, by name."""
        names = SessionRequest.model_fields
        return {name: getattr(self, name) for name in names if name != "protocol"}

    @property
    def optional_sections(self) -> dict[str, Any]:
        """Return the optional sections by name; a section that is not set is None."""
        fields = SessionRequest.model_fields
        return {
            name: value
            for name, value in self.sections.items()
            if fields[name].default is None
        }


class Terms(SessionRequest, Section):
    """The terms of a session, to which a party agrees when it joins."""

    coterie: int = TERMS_VERSION
    session: Name
    protocol: ProtocolChoice
    deadlines: Deadlines
    guards: Guards
    risks: tuple[str, ...] = Field(description="Codes that each party must accept.")

    _plans: tuple[ColumnPlan, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _check(self) -> Self:
        if unknown := self.identities.slots.keys() - set(self.layout.names):
            raise ValueError(f"no slot has the name {min(unknown)!r}")
        self._plans = build_column_plans(
            self.layout.n_column_groups, self.dictionary, self.preparation
        )
        for column, plan in enumerate(self.plans):
            if plan.harmonised.any() and not self.layout.can_pool(column):
                raise ValueError(
                    f"site effects need {MINIMUM_MEMBERS} parties with the same columns"
                )
        return self

    def plan(self, slot: str) -> ColumnPlan | None:
        """Return the plan that turns a slot's fields into columns, if there is one."""
        column = self.layout.slot(slot).column
        return self._plans[column] if self._plans else None

    def columns(self, slot: str, fields: Sequence[str]) -> Sequence[str]:
        """Return the names of a slot's clustered columns.

        fields: the columns of the slot's table, all of which are clustered if the terms
            have no dictionary.
        """
        plan, schema = self.plan(slot), self.dictionary_of(slot)
        if plan is not None:
            return plan.columns
        return fields if schema is None else schema.clustered_part.names

    def dictionary_of(self, slot: str) -> Schema | None:
        """Return the dictionary of a slot's fields, or None if the terms have none."""
        column = self.layout.slot(slot).column
        return None if self.dictionary is None else self.dictionary[column]

    def described_names(self, slot: str) -> tuple[str, ...]:
        """Return the names of a slot's fields that appear in profiles only."""
        schema = self.dictionary_of(slot)
        return () if schema is None else schema.described_names

    def bounds(self, slot: str) -> Ranges | None:
        """Return the ranges of a slot's clustered columns, or None if none is declared."""
        column = self.layout.slot(slot).column
        return None if self._ranges is None else self._ranges[column]

    @cached_property  # roles read the ranges in every round
    def _ranges(self) -> Sequence[Ranges] | None:
        if self._plans:
            return [plan.bounds for plan in self._plans]
        if self.dictionary is None:
            return None
        return [Ranges.of(schema.clustered_part) for schema in self.dictionary]

    @property
    def plans(self) -> Sequence[ColumnPlan]:
        """Return the plans of all column groups; empty without a preparation."""
        return self._plans

    @property
    def title(self) -> str:
        """Return the title of the session, or its id if it has no title."""
        return self.about.title or self.session


@lru_cache(maxsize=SESSIONS_IN_MEMORY)
def read_terms(text: bytes) -> Terms:
    """Parse the terms; raise VersionMismatch if their format has another version."""
    # Check the version first, because later versions may have additional fields.
    version = parse_as(_TermsVersion, text, "terms").coterie
    if version != TERMS_VERSION:
        release = "an older" if version < TERMS_VERSION else "a newer"
        raise VersionMismatch(
            f"The terms have version {version}, which {release} release wrote; this release "
            f"reads version {TERMS_VERSION}."
        )
    return parse_as(Terms, text, "terms")


class _TermsVersion(Value):
    model_config = ConfigDict(extra="ignore")

    coterie: int
