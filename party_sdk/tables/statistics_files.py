"""Files of SPSS, SAS and Stata, read by pyreadstat and written as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.extras import require_extra
from party_sdk.tables.files import NUMBER_BYTES, Limits
from party_sdk.tables.text_format import write_rows
from party_sdk.tables.unpacking import Labels, Unpacked

_READERS: Final = {
    ".sav": "read_sav", ".zsav": "read_sav",
    ".sas7bdat": "read_sas7bdat", ".dta": "read_dta",
}  # fmt: skip
_ROWS: Final = 50_000


def unpack_study(path: Path, copy: Path, limits: Limits) -> Unpacked:
    """Write the table of a file as text; user-defined missing values are missing.

    Raises InvalidData if it is no such file, or a compressed one that holds more cells
        than it may.
    """
    pyreadstat, reader = _reader(path)
    try:
        pieces = pyreadstat.read_file_in_chunks(
            reader, str(path), chunksize=_ROWS, output_format="dict"
        )
        first = next(pieces, None)
        names = list(first[0]) if first else []
        if first is None or not any(len(values) for values in first[0].values()):
            raise InvalidData(f"{path.name!r} has no rows.")
        empty = write_rows(names, _rows(chain([first], pieces), limits), copy)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError):
        raise InvalidData(f"{path.name!r} is no readable {path.suffix} file.") from None
    numeric = [
        place
        for place, values in enumerate(first[0].values())
        if not any(isinstance(value, str) for value in values)
    ]
    return Unpacked(empty=tuple(empty), numeric=tuple(numeric))


def read_labels(path: Path) -> Labels:
    """Return how a file calls its columns and the values in them."""
    _, read = _reader(path)
    _, about = read(str(path), metadataonly=True, output_format="dict")
    titles = about.column_names_to_labels or {}
    return Labels(
        titles={name: title for name, title in titles.items() if title},
        labels={
            name: {v: text for v, text in of.items() if isinstance(v, int | float)}
            for name, of in (about.variable_value_labels or {}).items()
        },
    )


def require_reader() -> None:
    """Refuse these files where pyreadstat is not installed."""
    why = "Files of SPSS, SAS and Stata are read by pyreadstat"
    require_extra("statistics", why, "pyreadstat")


def _reader(path: Path) -> tuple[Any, Any]:
    """Return the library, and its function for a file of this ending."""
    require_reader()
    import pyreadstat

    return pyreadstat, getattr(pyreadstat, _READERS[path.suffix.lower()])


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
