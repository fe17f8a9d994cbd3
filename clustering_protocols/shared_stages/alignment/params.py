"""Parameters that determine how parties align their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract import Params
from clustering_protocols.contract.parameters import LINKING
from clustering_protocols.numerics.data_source import (
    DataSource,
    check_unique_ids,
    find_first_rows,
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
    "Other parties hold the same rows, and ids identify these: name the id column with "
    "--id-column (id_column=…)."
)
_OR_POSITION: Final = (
    " Without ids, the terms must have alignment.method 'position', and all tables must have "
    "the same rows in the same order."
)
_NO_VALUES: Final = (
    "No row can be linked: the {kind} of this table are empty, belong to several rows, or "
    "stand for a missing value, such as 'unknown' or 0000. Name the right columns with "
    "--id-column (id_column=…)."
)
_LEAST_UNIQUE: Final = 0.8
MINIMUM_SHARE: Final = 0.8


class Alignment(Params):
    """The way in which the parties of a row group align their rows."""

    method: Literal["declared", "position", "ecdh"] = Field(
        default="declared",
        description="declared: all parties have rows with the same ids, in any order. "
        "position: all parties have the same rows in the same order, which is not checked "
        "if rows have no ids. ecdh: rows with common ids or match keys are found "
        "by private set intersection.",
    )
    normalisation: tuple[Step, ...] = Field(
        default=("nfkc", "casefold", "spaces", "strip"),
        description="Steps that normalise each id column, applied in this order. nfc, "
        "nfkc: Unicode normalisation; casefold: ignore case; spaces: replace inner white "
        "space by one space; strip: remove outer white space; no-punctuation: keep only "
        "letters and digits; digits: keep only digits; strip-zeros: remove leading zeros; "
        "zero-pad:8: pad with leading zeros to eight characters.",
    )
    id_patterns: tuple[Pattern, ...] = Field(
        default=(),
        max_length=20,
        description="What the ids in each id column look like: 9 stands for a digit, A for "
        "a letter, and any other character for itself, e.g. KV-99999999. Each party "
        "compares its own ids and does not disclose the result.",
    )
    duplicates: Duplicates = Field(
        default="error",
        description="What happens if rows of one party have the same id. error: the party "
        "cannot join. first: only the first of these rows takes part.",
    )
    minimum_overlap: int = Field(
        default=1,
        ge=1,
        le=2**40,
        description="If a row group has fewer common rows, the session ends before any "
        "data are sent; guards.minimum_rows applies as well.",
    )
    minimum_share: float = Field(
        default=MINIMUM_SHARE,
        ge=0,
        le=1,
        description="If a smaller share of the smallest table of a row group is common, "
        "every operator is asked before any data are sent. Choose a lower value if you "
        "expect a small overlap.",
    )

    match_keys: tuple[MatchKey, ...] = Field(
        default=(),
        max_length=40,
        description="Only with ecdh: columns that identify a person without a common id, "
        "written as in 'surname | soundex + birth_date | date'. A row is linked by the "
        "first key on which two parties agree.",
    )
    key_uniqueness: float = Field(
        default=_LEAST_UNIQUE,
        ge=0,
        le=1,
        description="A party refuses a match key if a smaller share of its values belongs "
        "to a single row.",
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

    @property
    def match_key_columns(self) -> tuple[str, ...]:
        """Return the columns of the match keys, whose cells together form a row's id."""
        return key_columns(self.match_keys)

    @property
    def n_keys(self) -> int:
        """Return the number of keys by which rows are linked; an id counts as one key."""
        return max(1, len(self.match_keys))

    def match_key_values(self, data: DataSource) -> list[KeyValues]:
        """Return the values of the match keys in a party's rows.

        If the terms have no match keys, the id is the only key: see `identify_rows`.

        Raises InvalidData if the table lacks the columns of a key or repeats ids, or if
            too few values of a key are unique.
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
                f"{', '.join(self.match_key_columns)}."
            )
        keys = compute_key_values(data.ids, self.match_keys, self.normalisation)
        check_key_uniqueness(keys, self.key_uniqueness)
        return keys

    def identify_rows(self, data: DataSource) -> IdentifiedRows:
        """Return the distinct ids of a party's rows.

        If the method is ``ecdh``, rows whose id denotes a missing value are left out.

        Raises InvalidData if rows have no ids, or duplicate ids although the terms do
            not allow them.
        """
        if data.ids is None:
            raise InvalidData(_NO_IDS + _OR_POSITION * (self.method == "declared"))
        left_out = set(rows_without_id(data.ids)) if self.method == "ecdh" else set()
        return distinct_ids(data.ids, self.normalisation, self.duplicates, left_out)


class AlignedParams(Params):
    """Base class for the parameters of protocols whose row groups can span parties."""

    alignment: Alignment = Field(default=Alignment(), json_schema_extra=LINKING)

    @property
    def selects_rows(self) -> bool:
        """Return whether the common rows are found during the session."""
        return self.alignment.method == "ecdh"

    @property
    def linking_keys(self) -> Sequence[str]:
        """Return the match keys by which rows are linked; empty if they have ids."""
        return self.alignment.match_keys

    @property
    def match_key_columns(self) -> Sequence[str]:
        """Return the columns of the match keys, whose cells together form a row's id."""
        return self.alignment.match_key_columns

    def normalise_id(self, name: str, *, shared: bool) -> str:
        """Return a row's id, normalised if the row is shared with other parties."""
        return (
            identifiers.normalise_id(name, self.alignment.normalisation)
            if shared
            else name
        )

    def select_rows(self, data: DataSource, *, shared: bool) -> IntArray | None:
        """Return the rows that take part, in the common order of the row group.

        None stands for all rows in table order. A party that shares its rows with no
        other party needs no ids and keeps the order of its table.

        shared: whether other parties hold the same rows.

        Raises InvalidData if rows are matched by id but have none, or have duplicate
            ids although the terms do not allow them, or if no row can be linked.
        Raises GuardRefused if the library that masks values is not installed.
        """
        alignment = self.alignment
        if not shared:
            if alignment.duplicates == "error" or data.ids is None:
                check_unique_ids(data.ids)
                return None
            rows = find_first_rows(data.ids)
        elif alignment.method == "position" and data.ids is None:
            return None
        elif alignment.method == "ecdh":  # checked now, matched during the session
            if not any(key.n_unique for key in alignment.match_key_values(data)):
                kind = "match keys" if alignment.match_keys else "ids"
                raise InvalidData(_NO_VALUES.format(kind=kind))
            ristretto.load_sodium()
            return None
        else:
            own = alignment.identify_rows(data)
            rows = own.rows if alignment.method == "position" else own.rows_by_id
        return None if np.array_equal(rows, np.arange(data.n_rows)) else rows


BY_MATCH_KEYS: Final = Alignment(
    method="ecdh", match_keys=("person | digits", "person | zero-pad:6")
)
"""Two match keys for synthetic tables, whose ids are taken as a column ``person``."""
