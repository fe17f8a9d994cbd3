"""Files of SPSS, SAS and Stata, read by pyreadstat where it is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.extras import require_extra
from party_sdk.tables.formats.copied_source import CopiedSource
from party_sdk.tables.parsing.dialect import Dialect
from party_sdk.tables.parsing.limits import NUMBER_BYTES, Limits
from party_sdk.tables.parsing.rows_as_text import write_rows

_READERS = {
    ".sav": "read_sav", ".zsav": "read_sav",
    ".sas7bdat": "read_sas7bdat", ".dta": "read_dta",
}  # fmt: skip
_ROWS = 50_000
STUDIES: Final = frozenset({"spss", "sas", "stata"})


class StudyLabels(NamedTuple):
    """Titles of columns, and labels of numbers, as a file of a study has them."""

    titles: Mapping[str, str]
    labels: Mapping[str, Mapping[float, str]]


def study_source(
    path: Path, said: Dialect, folder: Path, limits: Limits
) -> CopiedSource:
    """Return the table of a file of SPSS, SAS or Stata; user-defined gaps are gaps.

    Raises InvalidParameters if pyreadstat is not installed.
    Raises InvalidData if it is no such file, or a compressed one that holds more cells
        than it may.
    """
    pyreadstat, reader = _reader(path)
    try:
        # .xpt and .por do not say how many rows they have: it reads on without an end
        pieces = takewhile(
            _has_rows,
            pyreadstat.read_file_in_chunks(
                reader, str(path), chunksize=_ROWS, output_format="dict"
            ),
        )
        first = next(pieces, None)
        names = list(first[0]) if first else []
        if first is None or not names:
            raise InvalidData(f"{path.name!r} has no rows.")
        copy = folder / "study.csv"
        write_rows(names, _rows(chain([first], pieces), limits), copy)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError):
        raise InvalidData(f"{path.name!r} is no readable {path.suffix} file.") from None
    return CopiedSource(copy, said)


def codebook(path: Path) -> StudyLabels:
    """Return how a file of a study calls its columns and the values in them."""
    _, read = _reader(path)
    _, about = read(str(path), metadataonly=True, output_format="dict")
    titles = about.column_names_to_labels or {}
    return StudyLabels(
        titles={name: title for name, title in titles.items() if title},
        labels={
            name: {v: text for v, text in of.items() if isinstance(v, int | float)}
            for name, of in (about.variable_value_labels or {}).items()
        },
    )


def require_reader() -> None:
    """Refuse files of studies where pyreadstat is not installed."""
    why = "Files of SPSS, SAS and Stata are read by pyreadstat"
    require_extra("statistics", why, "pyreadstat")


def _reader(path: Path) -> tuple[Any, Any]:
    """Return the library, and its function for a file of this ending."""
    require_reader()
    import pyreadstat

    return pyreadstat, getattr(pyreadstat, _READERS[path.suffix.lower()])


def _has_rows(piece: tuple[dict[str, Any], Any]) -> bool:
    return any(len(values) for values in piece[0].values())


def _rows(
    pieces: Iterator[tuple[dict[str, Any], Any]], limits: Limits
) -> Iterator[Sequence[Any]]:
    n_cells = 0
    for columns, _ in pieces:
        lists = [
            values.tolist() if hasattr(values, "tolist") else list(values)
            for values in columns.values()
        ]
        n_cells += sum(map(len, lists))
        limits.check_unpacked(
            NUMBER_BYTES * n_cells,
            f"{limits.name!r} takes",
            "Save the columns you need",
        )
        yield from zip(*lists, strict=True)
