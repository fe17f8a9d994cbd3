"""How a table is to be read: what options and callers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from party_sdk.tables.dialect import Dialect
from party_sdk.tables.mapping import TableMapping
from party_sdk.tables.names import IdColumns, normalise_id_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How a table is to be read.

    id_column: the column, or columns together, that name the rows. Ids are texts,
        normalised to NFKC; of several columns the JSON list of their texts.
    match_columns: the columns that name the rows in place of ``id_column``, where rows are
        linked by match keys. Their cells may be empty, changed by a mapping, and
        clustered as well.
    columns: the columns to cluster, in this order; the dictionary's by default, or all
        but the id.
    schema: the dictionary: what columns mean. Columns are found by name, in any order.
    preparation: what becomes of the dictionary's fields: of categories, and where a
        value is missing.
    dialect: what is known of how a text file is written.
    mapping: how the table becomes what the dictionary describes.
    allow: guards to switch off, of :data:`~party_sdk.tables.guards.SWITCHES`.
    """

    id_column: IdColumns = None
    match_columns: Sequence[str] = ()
    columns: Sequence[str] | None = None
    schema: Schema | None = None
    preparation: Preparation | None = None
    dialect: Dialect = field(default_factory=Dialect)
    mapping: TableMapping | None = None
    allow: Sequence[str] = ()

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Return the columns that together name the rows; none without ids."""
        return normalise_id_columns(self.id_column)

    @property
    def file_dialect(self) -> Dialect:
        """Return the dialect, and the mapping's where the dialect says nothing."""
        if self.mapping is None:
            return self.dialect
        before = self.mapping.file
        said = {
            each.name: given
            for each in fields(Dialect)
            if (given := getattr(self.dialect, each.name)) != each.default
        }
        missing = tuple(dict.fromkeys([*before.missing, *self.dialect.missing]))
        return replace(before, **{**said, "missing": missing})
