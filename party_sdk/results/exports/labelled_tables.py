"""The own table with the cluster of each row, for a spreadsheet, SPSS, Stata or R.

Levels and clusters are whole numbers with value labels where a kind of file has them
(.sav, .dta), categories in Parquet, and words in text and sheets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.extras import require_extra
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.numerics.profiles import NO_YES
from clustering_protocols.records.arrays import FloatArray, IntArray
from coterie_pages.formatting import cluster_title
from party_sdk.results.label_files import id_columns, write_arrow
from party_sdk.results.row_labels import check_size, free_name
from party_sdk.tables import Table

STUDY_ENDINGS: Final = (".sav", ".dta")
ENDINGS: Final = (".csv", ".xlsx", ".parquet", *STUDY_ENDINGS)
_LONGEST_NAME: Final = {".sav": 64, ".dta": 32}
_EPOCH: Final = np.datetime64("1970-01-01", "D")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExportColumn:
    """One column of a file.

    values: float64 (n,), NaN for no value; of levels their places; of dates days since
        1970-01-01. Of ids an array of texts.
    title: what the column means.
    levels: what whole numbers stand for; empty for other columns.
    """

    name: str
    values: FloatArray | pa.Array
    title: str = ""
    levels: Mapping[int, str]
    is_date: bool = False

    def arrow(self) -> pa.Array:
        """Return the column for text, sheets and Parquet: words where it has levels."""
        if not isinstance(self.values, np.ndarray):
            return self.values
        missing = np.isnan(self.values)
        if self.is_date:
            days = np.where(missing, 0, self.values).astype("timedelta64[D]")
            return pa.array(_EPOCH + days, mask=missing)
        if not self.levels:
            return pa.array(_whole(self.values), from_pandas=True)
        codes = sorted(self.levels)
        places = np.searchsorted(codes, np.where(missing, codes[0], self.values))
        return pa.DictionaryArray.from_arrays(
            pa.array(places.astype(np.int32), mask=missing),
            pa.array([self.levels[code] for code in codes], pa.string()),
        )


def columns_of(
    table: Table,
    labels: IntArray,
    memberships: FloatArray | None,
    names: Sequence[str] = (),
) -> list[ExportColumn]:
    """Return a party's table, variable by variable, with the clusters at its end.

    names: of the clusters, by number; '' for those without one.

    Raises InvalidData if the table has another number of rows than there are labels.
    """
    check_size(table.n_rows, len(labels))
    found = [
        ExportColumn(name=name, values=values, levels={})
        for name, values in id_columns(labels, table.ids, table.naming).items()
    ]
    taken = {column.name for column in found}
    for column, values in zip(table.described, matrix(table).T, strict=True):
        found.append(_variable(column, values, taken))
        taken.add(found[-1].name)
    clusters = range(max(len(names), 1 + int(labels.max(initial=-1))))
    called = {c: cluster_title(c, names) for c in clusters}
    found.append(
        ExportColumn(
            name=free_name("cluster", taken),
            values=np.where(labels < 0, np.nan, labels),
            title="Cluster",
            levels=called,
        )
    )
    for cluster, degrees in enumerate([] if memberships is None else memberships.T):
        name = free_name(f"membership_{cluster}", taken)
        title = f"Membership of {called.get(cluster, f'cluster {cluster}')}"
        found.append(ExportColumn(name=name, values=degrees, title=title, levels={}))
    return found


def _variable(column: Any, values: FloatArray, taken: set[str]) -> ExportColumn:
    levels: dict[int, str] = {}
    if column.field is not None and column.field.is_category:
        levels = dict(enumerate(column.field.labels))
    elif column.type == "boolean":
        levels = dict(enumerate(NO_YES))
    title = "" if column.field is None else column.field.title
    unit = "" if column.field is None else column.field.unit
    return ExportColumn(
        name=free_name(column.name, taken),
        values=values,
        title=f"{title or column.name}, {unit}" if unit else title,
        levels=levels,
        is_date=column.is_date,
    )


def write_columns(path: Path, columns: Sequence[ExportColumn]) -> None:
    """Write a table as the ending of a path says: whole, or not at all.

    Raises InvalidParameters if the ending is none of those that are written, or what
        writes such a file is not installed.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidParameters(
            f"No table is written as {ending!r}: take {', '.join(ENDINGS)}."
        )
    fresh = path.with_name(f".{path.name}.new")
    try:
        if ending in STUDY_ENDINGS:
            _write_study(fresh, ending, columns)
        else:
            write_arrow(_arrow_table(columns, ending), fresh, ending)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _arrow_table(columns: Sequence[ExportColumn], ending: str) -> pa.Table:
    arrays = {column.name: column.arrow() for column in columns}
    if ending != ".parquet":  # which alone has categories
        arrays = {
            name: array.dictionary_decode()
            if isinstance(array, pa.DictionaryArray)
            else array
            for name, array in arrays.items()
        }
    return pa.table(arrays)


def _write_study(path: Path, ending: str, columns: Sequence[ExportColumn]) -> None:
    """Write a file of SPSS or Stata: numbers with value labels, and variable labels."""
    require_extra(
        "statistics", "Files of SPSS and Stata are written by pyreadstat", "pyreadstat"
    )
    import pandas as pd
    import pyreadstat

    names = list(_valid_names([each.name for each in columns], _LONGEST_NAME[ending]))
    frame = pd.DataFrame(
        {name: _study_values(each) for name, each in zip(names, columns, strict=True)}
    )
    labels: dict[str, dict[int | float, str]] = {
        name: {code: each.levels[code] for code in each.levels}
        for name, each in zip(names, columns, strict=True)
        if each.levels
    }
    titles: list[str | None] = [(each.title or each.name)[:80] for each in columns]
    write = pyreadstat.write_sav if ending == ".sav" else pyreadstat.write_dta
    write(frame, str(path), column_labels=titles, variable_value_labels=labels)


def _study_values(column: ExportColumn) -> Any:
    import pandas as pd

    if not isinstance(column.values, np.ndarray):
        return column.values.to_pylist()
    if column.is_date:
        days = np.where(np.isnan(column.values), 0, column.values)
        dates = (_EPOCH + days.astype("timedelta64[D]")).astype(object)
        return pd.Series(
            [
                None if np.isnan(v) else d
                for v, d in zip(column.values, dates, strict=True)
            ],
            dtype=object,
        )
    if column.levels and not np.isnan(column.values).any():
        return column.values.astype(np.int32)
    return column.values


def _valid_names(names: Sequence[str], longest: int) -> Iterator[str]:
    """Yield names that SPSS and Stata take; the old name is the variable's label."""
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name).strip("_")[: longest - 3] or "v"
        if not plain[0].isalpha():
            plain = f"v_{plain}"
        fresh, number = plain, 2
        while fresh.lower() in taken:
            fresh, number = f"{plain}{number}", number + 1
        taken.add(fresh.lower())
        yield fresh


def _whole(values: FloatArray) -> Any:
    """Return whole numbers as such; others as they are."""
    known = values[~np.isnan(values)]
    if len(known) and (known == np.rint(known)).all() and np.abs(known).max() < 2**53:
        missing = np.isnan(values)
        return np.ma.masked_array(
            np.where(missing, 0, values).astype(np.int64), missing
        )
    return values
