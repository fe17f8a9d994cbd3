"""Small files that may cost a reader of tables far too much, or lead it astray."""

import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from xlsxwriter import Workbook

MEBIBYTE = 1 << 20


def sheet(
    path: Path, *corners: str, said: str | None = None, head: str = "", text: str = ""
) -> None:
    """Write a workbook with one sheet: two columns of names, and cells at corners.

    said: the range that the sheet claims to span.
    head: what stands above the sheet's XML.
    text: what the first name is; ``id`` by default.
    """
    with Workbook(path) as book:
        book.add_worksheet("rows")
    cells = "".join(
        f'<row r="{"".join(filter(str.isdigit, corner))}">'
        f'<c r="{corner}"><v>1</v></c></row>'
        for corner in corners
    )
    names = "".join(
        f'<c r="{place}1" t="inlineStr"><is><t>{name}</t></is></c>'
        for place, name in zip("AB", (text or "id", "x"), strict=True)
    )
    dimension = "" if said is None else f'<dimension ref="{said}"/>'
    xml = (
        f'<?xml version="1.0"?>{head}<worksheet xmlns="http://schemas.openxmlformats.org/'
        f'spreadsheetml/2006/main">{dimension}<sheetData><row r="1">{names}</row>{cells}'
        "</sheetData></worksheet>"
    )
    replace_in(path, "xl/worksheets/sheet1.xml", xml.encode())


def replace_in(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path) as book:
        kept = {each: book.read(each) for each in book.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for each, old in kept.items():
            book.writestr(each, content if each == name else old)


def entities(path: Path) -> None:
    """Write a sheet in which each entity holds twenty of another."""
    names = "abcdefgh"
    nested = "".join(
        f'<!ENTITY {name} "{20 * ("&" + before + ";")}">'
        for before, name in pairwise(names)
    )
    head = f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaaaaaaaaaaaa">{nested}]>'
    sheet(path, "A2", "B2", head=head, text="&h;")


def outside(path: Path) -> None:
    """Write a sheet whose first name is the content of another file."""
    head = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    sheet(path, "A2", "B2", head=head, text="&a;")


def blanks(path: Path) -> None:
    """Write a workbook whose list of sheets unpacks to more than a gibibyte."""
    sheet(path, "A2")
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book,
        book.open("xl/workbook.xml", "w", force_zip64=True) as file,
    ):
        for _ in range(1100):
            file.write(b" " * MEBIBYTE)


def equal_rows(path: Path) -> None:
    n = 1_000_000
    ids = pa.array(["1"] * n).dictionary_encode()
    zeros = pa.array(np.zeros(n))
    rows = pa.table({"id": ids, "x": zeros, "y": zeros})
    with parquet.ParquetWriter(path, rows.schema, compression="zstd") as file:
        for _ in range(50):
            file.write_table(rows)


def long_cell(path: Path) -> None:
    """Write one row whose id takes 64 MiB."""
    rows = pa.table({"id": ["x" * (64 * MEBIBYTE)], "x": [1.0]})
    parquet.write_table(rows, path, compression="zstd")


def false_footer(path: Path) -> None:
    """Write a file that says that its footer takes two gibibytes."""
    parquet.write_table(pa.table({"id": ["a", "b"], "x": [1.0, 2.0]}), path)
    said = bytearray(path.read_bytes())
    said[-8:-4] = (0x7FFFFFFF).to_bytes(4, "little")
    path.write_bytes(said)


def long_line(path: Path) -> None:
    """Write a plain text with a cell of 30 MiB."""
    path.write_bytes(b"id,x,y\n1,2," + b"9" * (30 * MEBIBYTE) + b"\n")


HOSTILE: dict[str, Callable[[Path], None]] = {
    "far.xlsx": lambda path: sheet(path, "A2", "ZZ1048576"),
    "lying.xlsx": lambda path: sheet(path, "A2", "ZZ1048576", said="A1:B2"),
    "rows.parquet": equal_rows,
    "cell.parquet": long_cell,
    "farthest.xlsx": lambda path: sheet(path, "XFD1048576"),
    "entities.xlsx": entities,
    "outside.xlsx": outside,
    "blanks.xlsx": blanks,
    "footer.parquet": false_footer,
    "line.csv": long_line,
}
"""Files by name; a smaller one would be read, or refused for what it holds."""

TOO_LARGE = frozenset({"rows.parquet"})
"""Files that are refused for the memory that they take."""
