"""Parameters of the alignment of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import numpy as np
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract import Params
from clustering_protocols.contract.parameters import LINKING
from clustering_protocols.numerics.data_source import (
    DataSource,
    check_unique,
    first_rows,
)
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.secrecy import ristretto
from clustering_protocols.shared_stages.alignment import identifiers
from clustering_protocols.shared_stages.alignment.cell_values import rows_without_id
from clustering_protocols.shared_stages.alignment.id_patterns import Pattern
from clustering_protocols.shared_stages.alignment.identifiers import (
    Duplicates,
    IdentifiedRows,
    Step,
    distinct_ids,
)
from clustering_protocols.shared_stages.alignment.match_keys import (
    KeyValues,
    MatchKey,
    check_key_uniqueness,
    compute_key_values,
    key_columns,
)

_NO_IDS: Final = (
    "Other parties hold the same rows, and ids say which is which: name their column as "
    "--id-column (id_column=…)."
)
_OR_POSITION: Final = (
    " Without ids, the terms have to say alignment.method: position, and all tables have "
    "the same rows in the same order."
)
_LEAST_UNIQUE: Final = 0.8
MINIMUM_SHARE: Final = 0.8


class Alignment(Params):
    """How rows are aligned within a row group."""

    method: Literal["declared", "position", "ecdh"] = Field(
        default="declared",
        description="declared: parties bring rows with the same ids, in any order. "
        "position: they bring the same rows in the same order, and nothing checks it "
        "where rows have no ids. ecdh: rows with common ids are found by private set "
        "intersection; parties bring ids.",
    )
    normalisation: tuple[Step, ...] = Field(
        default=("nfkc", "casefold", "spaces", "strip"),
        description="Steps that bring each id column into one form, in this order. nfc, "
        "nfkc: Unicode forms; casefold: ignore case; spaces: one blank for inner white "
        "space; strip: remove outer white space; no-punctuation: keep letters and digits; "
        "digits: keep digits; strip-zeros: remove leading zeros; zero-pad:8: add leading "
        "zeros, up to eight characters.",
    )
    id_patterns: tuple[Pattern, ...] = Field(
        default=(),
        max_length=20,
        description="What the ids of each id column look like: 9 is a digit, A a letter, "
        "all else itself, e.g. KV-99999999. Each party compares its ids at home.",
    )
    duplicates: Duplicates = Field(
        default="error",
        description="Rows of one party with the same id. error: it is refused before it "
        "joins. first: the first one takes part, the others do not.",
    )
    minimum_overlap: int = Field(
        default=1,
        ge=1,
        le=2**40,
        description="With fewer common rows in a row group the session ends before any "
        "data leave; guards.minimum_rows holds too.",
    )
    minimum_share: float = Field(
        default=MINIMUM_SHARE,
        ge=0,
        le=1,
        description="With a smaller share of the smallest table of a row group in common, "
        "every operator is asked before any data are sent. Lower it if you expect a small "
        "overlap.",
    )

    match_keys: tuple[MatchKey, ...] = Field(
        default=(),
        max_length=40,
        description="With ecdh: columns that identify a person without a common id, "
        "as texts such as 'surname | soundex + birth_date | date'. A row is linked by the "
        "first key on which two parties agree.",
    )
    key_uniqueness: float = Field(
        default=_LEAST_UNIQUE,
        ge=0,
        le=1,
        description="A party refuses a match key if fewer of its values, as a share, name "
        "one row alone.",
    )

    @field_validator("normalisation")
    @classmethod
    def _check_steps(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        kinds = [step.partition(":")[0] for step in steps]
        if len(set(kinds)) < len(kinds) or {"nfc", "nfkc"} <= set(kinds):
            raise ValueError("name each step once, and only one of nfc and nfkc")
        return steps

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.match_keys and self.method != "ecdh":
            raise ValueError("match_keys need method 'ecdh'")
        if self.match_keys and self.id_patterns:
            raise ValueError("id_patterns do not apply to match_keys: leave them out")
        if len(set(self.match_keys)) < len(self.match_keys):
            raise ValueError("name each match key once")
        return self

    @model_serializer(mode="wrap")
    def _omit_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit fields that earlier terms do not have, if they have their defaults."""
        values: dict[str, Any] = write(self)
        newer_fields = ("id_patterns", "minimum_share", "match_keys", "key_uniqueness")
        for name in newer_fields:
            if getattr(self, name) == type(self).model_fields[name].default:
                del values[name]
        return values

    @property
    def match_columns(self) -> tuple[str, ...]:
        """Return the columns of the match keys, which then make up a row's id."""
        return key_columns(self.match_keys)

    @property
    def n_keys(self) -> int:
        """Return the number of keys by which rows are linked; an exact id counts as one."""
        return max(1, len(self.match_keys))

    def match_key_values(self, data: DataSource) -> list[KeyValues]:
        """Return the values of the match keys of a party's rows.

        Without match keys the id is the only key.

        Raises InvalidData if the table lacks a key's columns, or a key has too few
            unique values.
        """
        if not self.match_keys:
            own = self.identify_rows(data)
            values: list[str | None] = [None] * data.n_rows
            for name, row in zip(own.ids, own.rows, strict=True):
                values[row] = name
            return [KeyValues("id", values, n_filled=len(own.ids))]
        if data.ids is None:
            raise InvalidData(
                "Rows are linked by match keys: use a table with the columns "
                f"{', '.join(self.match_columns)}."
            )
        keys = compute_key_values(data.ids, self.match_keys, self.normalisation)
        check_key_uniqueness(keys, self.key_uniqueness)
        return keys

    def identify_rows(self, data: DataSource) -> IdentifiedRows:
        """Return the distinct ids of a party's rows.

        With ``ecdh`` a row whose id means a missing value takes no part.

        Raises InvalidData if rows have no ids, or duplicate ids that the terms refuse.
        """
        if data.ids is None:
            raise InvalidData(_NO_IDS + _OR_POSITION * (self.method == "declared"))
        left_out = set(rows_without_id(data.ids)) if self.method == "ecdh" else set()
        return distinct_ids(data.ids, self.normalisation, self.duplicates, left_out)


class AlignedParams(Params):
    """Parameters of a protocol in which parties of a row group hold the same rows."""

    alignment: Alignment = Field(default=Alignment(), json_schema_extra=LINKING)

    @property
    def selects_rows(self) -> bool:
        """Return whether rows are selected within the session."""
        return self.alignment.method == "ecdh"

    @property
    def linked_by(self) -> Sequence[str]:
        """Return the match keys by which rows are linked; empty if ids name rows."""
        return self.alignment.match_keys

    @property
    def match_columns(self) -> Sequence[str]:
        """Return the columns of the match keys, which then make up a row's id."""
        return self.alignment.match_columns

    def normalise_id(self, name: str, *, shared: bool) -> str:
        """Return a row's id in the form in which the parties compare it."""
        return (
            identifiers.normalise_id(name, self.alignment.normalisation)
            if shared
            else name
        )

    def select_rows(self, data: DataSource, *, shared: bool) -> IntArray | None:
        """Return the rows that take part, in the common order of the row group.

        None for all rows in the order of the table. A party that shares rows with nobody
        needs no ids, and keeps the order of its table.

        Raises InvalidData if rows that are matched by ids have none, or duplicate ids
            that the terms refuse.
        Raises GuardRefused if a library for the intersection is missing.
        """
        alignment = self.alignment
        if not shared:
            if alignment.duplicates == "error" or data.ids is None:
                check_unique(data.ids)
                return None
            rows = first_rows(data.ids)
        elif alignment.method == "position" and data.ids is None:
            return None
        elif alignment.method == "ecdh":  # rows are matched within the session
            if alignment.match_keys:
                alignment.match_key_values(data)
            else:
                alignment.identify_rows(data)
            ristretto.load_sodium()
            return None
        else:
            own = alignment.identify_rows(data)
            rows = own.rows if alignment.method == "position" else own.rows_by_id
        return None if np.array_equal(rows, np.arange(data.n_rows)) else rows


BY_MATCH_KEYS: Final = Alignment(
    method="ecdh", match_keys=("person | digits", "person | zero-pad:6")
)
"""Two match keys for synthetic rows, in which an id stands for a person."""
