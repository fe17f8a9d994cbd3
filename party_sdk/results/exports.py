"""Export a party's table with the cluster of each row, for spreadsheets, SPSS or Stata.

Levels and clusters are written as integers with value labels in .sav and .dta files, as
categories in Parquet, and as words in CSV and Excel files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.extras import require_extra
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.numerics.profiles import NO_YES
from clustering_protocols.records.arrays import FloatArray, IntArray
from coterie_pages.formatting import name_cluster
from party_sdk.results.label_files import (
    check_row_count,
    id_columns,
    make_unused_name,
    write_arrow,
)
from party_sdk.results.output_files import atomic_replacement
from party_sdk.tables import Table

FORMATS: Final = ("csv", "xlsx", "parquet", "sav", "dta")
_LIBRARIES: Final = {"xlsx": "xlsxwriter", "sav": "pyreadstat", "dta": "pyreadstat"}
_STATISTICS: Final = frozenset({".sav", ".dta"})
_LONGEST_NAME: Final = {".sav": 64, ".dta": 32}
_EPOCH: Final = np.datetime64("1970-01-01", "D")
_RESERVED: Final = re.compile(
    "all|and|by|byte|double|eq|float|ge|gt|if|in|int|le|long|lt|ne|not|or"
    r"|str(\d+|l)|to|using|with",
    re.IGNORECASE,
)
"""Names that SPSS or Stata reserves."""

_FORMULA: Final = re.compile(r"[=+\-@\t\r](?![\d.]+$)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExportColumn:
    """One column of an exported file.

    values: float64 (n,), with NaN for missing values: numbers, indices of levels, or
        days since 1970-01-01. For ids, an array of texts.
    title: a description of the column.
    levels: the name of each level, by its index; empty for columns without levels.
    """

    name: str
    values: FloatArray | pa.Array
    title: str = ""
    levels: Mapping[int, str]
    is_date: bool = False

    def to_arrow(self) -> pa.Array:
        """Return the column for CSV, Excel and Parquet, with levels as words."""
        if not isinstance(self.values, np.ndarray):
            return self.values
        is_missing = np.isnan(self.values)
        if self.is_date:
            return pa.array(self._dates(), mask=is_missing)
        if self.levels:
            codes = sorted(self.levels)
            indices = np.searchsorted(
                codes, np.where(is_missing, codes[0], self.values)
            )
            return pa.DictionaryArray.from_arrays(
                pa.array(indices.astype(np.int32), mask=is_missing),
                pa.array([self.levels[code] for code in codes], pa.string()),
            )
        values = self.values[~is_missing]
        if (values == np.rint(values)).all() and (np.abs(values) < 2**53).all():
            integers = np.where(is_missing, 0, self.values).astype(np.int64)
            return pa.array(integers, mask=is_missing)
        return pa.array(self.values, from_pandas=True)

    def to_spss_or_stata(self) -> Any:
        """Return the column in the form in which pyreadstat can write it."""
        import pandas as pd

        if not isinstance(self.values, np.ndarray):
            return self.values.to_pylist()
        is_missing = np.isnan(self.values)
        if self.is_date:
            days = self._dates().astype(object)
            days[is_missing] = None
            return pd.Series(days, dtype=object)
        if self.levels and not is_missing.any():
            return self.values.astype(np.int32)
        return self.values

    def _dates(self) -> Any:
        days = np.nan_to_num(np.asarray(self.values))
        return _EPOCH + days.astype("timedelta64[D]")


def export_columns(
    table: Table,
    labels: IntArray,
    memberships: FloatArray | None,
    names: Sequence[str] = (),
) -> list[ExportColumn]:
    """Return the columns of a party's table, followed by its clusters and memberships.

    names: the names of the clusters, by number; '' for a cluster without a name.

    Raises InvalidData if the numbers of rows and labels differ.
    """
    check_row_count(table.n_rows, len(labels))
    columns = [
        ExportColumn(name=name, values=values, levels={})
        for name, values in id_columns(labels, table.ids, table.naming).items()
    ]
    names_in_use = {column.name for column in columns}

    def add_column(name: str, values: FloatArray, title: str, **more: Any) -> None:
        free = make_unused_name(name, names_in_use)
        names_in_use.add(free)
        more.setdefault("levels", {})
        columns.append(ExportColumn(name=free, values=values, title=title, **more))

    for column, values in zip(table.column_specs, matrix(table).T, strict=True):
        field = column.field
        levels: dict[int, str] = {}
        if field is not None and field.is_category:
            levels = dict(enumerate(field.labels))
        elif column.type == "boolean":
            levels = dict(enumerate(NO_YES))
        title = "" if field is None else field.title
        if field is not None and field.unit:
            title = f"{title or column.name}, {field.unit}"
        add_column(column.name, values, title, levels=levels, is_date=column.is_date)
    clusters = range(max(len(names), 1 + int(labels.max(initial=-1))))
    titles = {cluster: name_cluster(cluster, names) for cluster in clusters}
    numbers = np.where(labels < 0, np.nan, labels)
    add_column("cluster", numbers, "Cluster", levels=titles)
    for cluster, degrees in enumerate([] if memberships is None else memberships.T):
        cluster_name = titles.get(cluster, f"cluster {cluster}")
        add_column(f"membership_{cluster}", degrees, f"Membership of {cluster_name}")
    return columns


def write_export(path: Path, columns: Sequence[ExportColumn]) -> None:
    """Write an exported table atomically, in the format of the path's extension.

    Raises InvalidParameters if the extension is not in :data:`FORMATS`, or if the
    library for it is not installed. Raises StorageFull if the disk is full.
    """
    ending = path.suffix.lower()
    if ending[1:] not in FORMATS:
        raise InvalidParameters(
            f"Tables cannot be written as {ending!r}: use {', '.join(FORMATS)}."
        )
    with atomic_replacement(path) as fresh:
        if ending in _STATISTICS:
            _write_spss_or_stata(fresh, ending, columns)
        else:
            write_arrow(_build_arrow_table(columns, ending), fresh, ending)


def installed_formats() -> tuple[str, ...]:
    """Return the formats whose libraries are installed."""
    return tuple(
        name
        for name in FORMATS
        if name not in _LIBRARIES or find_spec(_LIBRARIES[name]) is not None
    )


def _build_arrow_table(columns: Sequence[ExportColumn], ending: str) -> pa.Table:
    """Build a table; in CSV, no text except ids can be mistaken for a formula."""
    if ending != ".csv":  # other formats distinguish texts from formulas
        return pa.table({column.name: column.to_arrow() for column in columns})
    arrays: dict[str, pa.Array] = {}
    for column in columns:
        array = column.to_arrow()
        if isinstance(array, pa.DictionaryArray):
            texts = pa.array(
                map(_escape_formula, array.dictionary.to_pylist()), pa.string()
            )
            array = texts.take(array.indices)
        arrays[make_unused_name(_escape_formula(column.name), arrays)] = array
    return pa.table(arrays)


def _escape_formula(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def _write_spss_or_stata(
    path: Path, ending: str, columns: Sequence[ExportColumn]
) -> None:
    require_extra(
        "statistics", "SPSS and Stata files are written by pyreadstat", "pyreadstat"
    )
    import pandas as pd
    import pyreadstat

    names = list(
        _valid_names([column.name for column in columns], _LONGEST_NAME[ending])
    )
    columns_by_name = dict(zip(names, columns, strict=True))
    frame = pd.DataFrame(
        {name: column.to_spss_or_stata() for name, column in columns_by_name.items()}
    )
    labels: dict[str, dict[int | float, str]] = {
        name: {code: column.levels[code] for code in column.levels}
        for name, column in columns_by_name.items()
        if column.levels
    }
    titles: list[str | None] = [
        (column.title or column.name)[:80] for column in columns
    ]
    write = pyreadstat.write_sav if ending == ".sav" else pyreadstat.write_dta
    write(frame, str(path), column_labels=titles, variable_value_labels=labels)


def _valid_names(names: Sequence[str], longest: int) -> Iterator[str]:
    """Yield a unique name for each column that SPSS and Stata accept."""
    names_in_use: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name).strip("_")[: longest - 3] or "v"
        if not plain[0].isalpha() or _RESERVED.fullmatch(plain):
            plain = f"v_{plain}"
        fresh, number = plain, 2
        while fresh.lower() in names_in_use:
            fresh, number = f"{plain}{number}", number + 1
        names_in_use.add(fresh.lower())
        yield fresh
