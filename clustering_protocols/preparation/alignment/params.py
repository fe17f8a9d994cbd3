"""Parameters of the alignment of rows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from clustering_protocols.contract import Params
from clustering_protocols.data import DataSource
from clustering_protocols.errors import InvalidData
from clustering_protocols.preparation.alignment.identifiers import (
    Duplicates,
    Identified,
    Step,
    identify,
)
from clustering_protocols.secrecy import oprf


class Alignment(Params):
    """How rows are aligned within a row group."""

    method: Literal["declared", "ecdh", "rsa"] = Field(
        default="declared",
        description="declared: parties bring the same rows in the same order. ecdh, "
        "rsa: rows with common ids are found by private set intersection, on an "
        "elliptic curve (fast) or by blind signatures (slow); parties bring ids.",
    )
    normalisation: tuple[Step, ...] = Field(
        default=("nfkc", "casefold", "spaces", "strip"),
        description="What makes ids equal, of each of their columns. nfc, nfkc: Unicode "
        "forms; casefold: upper and lower case; spaces: inner runs of white space; "
        "strip: outer white space.",
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

    @field_validator("normalisation")
    @classmethod
    def _in_order(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if len(set(steps)) < len(steps) or {"nfc", "nfkc"} <= set(steps):
            raise ValueError("each step once, and nfc or nfkc")
        return steps

    def identify(self, data: DataSource) -> Identified:
        """Return the different ids of a party's rows.

        Raises
        ------
        InvalidData
            If rows have no ids, or two have one, as the terms say.
        """
        if data.ids is None:
            raise InvalidData(
                "Rows are aligned by their ids: name their column as --id-column "
                "(id_column=…)."
            )
        return identify(data.ids, self.normalisation, self.duplicates)


class AlignedParams(Params):
    """Parameters of a protocol in which parties of a row group hold the same rows."""

    alignment: Alignment = Alignment()

    @property
    def selects_rows(self) -> bool:
        """Return whether rows are selected within the session."""
        return self.alignment.method != "declared"

    def check_rows(self, data: DataSource) -> None:
        """Refuse rows that cannot be aligned, before the party joins.

        Raises
        ------
        InvalidData
            If rows have no ids, or two have one, as the terms say.
        GuardRefused
            If a library for the intersection is missing.
        """
        declared = self.alignment
        if declared.method == "declared":
            super().check_rows(data)
            return
        oprf.require(declared.method)
        declared.identify(data)
