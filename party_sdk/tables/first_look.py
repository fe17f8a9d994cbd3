"""A table that nobody has described: its id column, and a dictionary of the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import Schema
from party_sdk.tables.drafts import infer
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport
from party_sdk.tables.table_opening import examine, read_column
from party_sdk.tables.words import fold_words

_ID_WORDS: Final = fold_words(
    "id ids nr no number code key pid mrn patient customer client case sample subject "
    "participant person record row kunde kundennummer fall probe"
)
_MOST_WORDS: Final = 12
"""A column with more different words says little of clusters."""


class FirstLook(NamedTuple):
    """A table as its draft reads it.

    left_out: why each column is not clustered.
    n_gaps: empty cells of the columns that are.
    """

    how: How
    schema: Schema
    left_out: Mapping[str, str]
    n_gaps: int


def look(table: Path, how: How, leave_out: Collection[str] = ()) -> FirstLook:
    """Return how a table is read whose dictionary is drafted without a question.

    Words of few kinds become levels. Left out are dates, comments, row numbers and
    columns with one value.

    leave_out: columns to leave out besides.

    Raises InvalidData if the table cannot be read, or nothing of it can be clustered.
    """
    # what counts rows is left out of the draft, unless it becomes the id
    how = replace(how, allow=(*how.allow, "running-number"))
    report, _ = examine(table, how)
    report.require_none()
    if not how.id_columns and (name := find_id_column(table, how, report)):
        how = replace(how, id_column=name)
        report, _ = examine(table, how)
    draft = infer(table, how, lambda _, words: 1 < len(words) <= _MOST_WORDS)
    reasons = {**draft.reasons, **dict.fromkeys(leave_out, "true classes")}
    for column in report.columns:
        if column.type == "date":
            reasons[column.name] = "dates"
        elif column.least is not None and column.least == column.largest:
            reasons[column.name] = "one value"
    draft = draft.change({name: {"role": "leave-out"} for name in reasons})
    if not any(variable.role == "cluster" for variable in draft.variables):
        raise InvalidData(
            "No column can be clustered: numbers, yes or no, or words of "
            f"{_MOST_WORDS} kinds at most. {_explain(reasons)}"
        )
    schema = draft.schema()
    used = set(schema.clustered_part.names)
    n_gaps = sum(column.missing for column in report.columns if column.name in used)
    return FirstLook(replace(how, schema=schema), schema, reasons, n_gaps)


def _explain(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name!r}: {why}" for name, why in reasons.items())


def find_id_column(table: Path, how: How, report: CheckReport) -> str | None:
    """Return the column that names the rows, each once; None where none looks so.

    It comes first, or its name says so, and it holds words or whole numbers.
    """
    for place, column in enumerate(report.columns):
        named = bool(fold_words(column.name) & _ID_WORDS)
        rises = column.type == "integer" and column.least is None
        words = column.type == "words" and (named or place == 0)
        if column.missing or not (
            words or rises or (named and column.type == "integer")
        ):
            continue
        cells = read_column(table, column.name, how)
        if len(set(cells)) == report.rows:
            return column.name
    return None
