"""Bytes to text: what kind of file it is, in which encoding, and a copy in UTF-8."""

from __future__ import annotations

import codecs
import gzip
import io
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

from clustering_protocols.common.errors import InvalidData
from party_sdk.home.disk_room import no_room
from party_sdk.tables.parsing.limits import UNPACK, Limits

SAMPLE_BYTES: Final = 1 << 18
_PIECE: Final = 1 << 20
_LONGEST_HEAD: Final = 1 << 24
FileKind: TypeAlias = Literal[
    "text", "gzip", "parquet", "excel", "spss", "sas", "stata"
]
_ENDINGS: Final[dict[str, FileKind]] = {
    ".parquet": "parquet", ".pq": "parquet",
    ".xlsx": "excel", ".xlsm": "excel", ".xlsb": "excel", ".xls": "excel", ".ods": "excel",
    ".sav": "spss", ".zsav": "spss", ".sas7bdat": "sas", ".dta": "stata",
}  # fmt: skip
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def kind_of(path: Path) -> FileKind:
    """Return what kind of table a file holds, by its first bytes and its ending.

    Raises InvalidData if there is no such file, or it is none that can be read twice.
    """
    if not path.exists():
        raise InvalidData(f"There is no file {path.name!r}.")
    if not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or device"
        raise InvalidData(f"{path.name!r} is {what}, and no readable file.")
    try:
        with _open_bytes(path) as file:
            head = file.read(8)
    except OSError:
        raise InvalidData(f"{path.name!r} may not be read here.") from None
    ending = path.suffix.lower()
    if not head:
        raise InvalidData(f"{path.name!r} is empty: no readable table.")
    if head.startswith(b"PAR1") or ending in {".parquet", ".pq"}:
        return "parquet"
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if head.startswith(b"PK"):
        raise InvalidData(
            f"{path.name!r} is a zip archive: unpack it, and name the table."
        )
    return "text"


def _open_bytes(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError:
        raise InvalidData(f"{path.name!r} may not be read here.") from None


def open_text_file(path: Path, kind: FileKind) -> IO[bytes]:
    """Open a text file, compressed or not."""
    return gzip.open(path) if kind == "gzip" else _open_bytes(path)  # type: ignore[return-value]  # a GzipFile reads bytes


def read_beginning(path: Path, kind: FileKind) -> bytes:
    """Return the beginning of a text file: some whole lines."""
    try:
        with open_text_file(path, kind) as file:
            head = file.read(SAMPLE_BYTES + 1)
            while head.count(b"\n") < 2 and len(head) < _LONGEST_HEAD:
                more = file.read(SAMPLE_BYTES)
                head += more
                if not more:
                    return head
    except (OSError, EOFError):
        raise InvalidData(f"{path.name!r} is no readable gzip file.") from None
    if len(head) <= SAMPLE_BYTES:
        return head
    whole = max(head.rfind(b"\n"), head.rfind(b"\r"))
    return head[: whole + 1] if whole > 0 else head[:SAMPLE_BYTES]


def encoding_of(head: bytes) -> str:
    """Return in which encoding a text is written, by its first bytes.

    Raises InvalidData if it is no text.
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    if b"\0" in head[:4096]:
        return _wide(head[:4096])
    return "utf-8" if _is_utf8(head) or _is_mixed(head) else single_byte(head)


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _is_mixed(head: bytes) -> bool:
    """Return whether only some lines are no UTF-8: two files that were put together.

    Letters of other encodings are UTF-8 by a rare chance. As UTF-8 the other lines are
    refused; in their own encoding these would hold wrong letters.
    """
    lines = [line for line in head.splitlines() if not line.isascii()]
    return 10 * sum(map(_is_utf8, lines)) > len(lines)


def single_byte(head: bytes) -> str:
    """Return the encoding of a text in which each byte is a character."""
    return "latin-1" if set(head) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "cp1252"


def _wide(head: bytes) -> str:
    """Return UTF-16 without its mark, where every second byte is mostly NUL."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > 0.4 * len(head) / 2 and even < odd / 4:
        return "utf-16-le"
    if even > 0.4 * len(head) / 2 and odd < even / 4:
        return "utf-16-be"
    raise InvalidData("The file holds NUL bytes: it is no readable text.")


def has_mixed_ends(head: bytes) -> bool:
    """Return whether lines end in several ways, or with a carriage return alone."""
    feeds, returns, both = head.count(b"\n"), head.count(b"\r"), head.count(b"\r\n")
    return returns > both or 0 < both < feeds


def copy_decoded(
    path: Path, kind: FileKind, encoding: str, copy: Path, limits: Limits
) -> None:
    """Write a text as UTF-8, lines ending with a line feed alone.

    Raises InvalidData if a byte is none of the encoding, or a compressed file holds
        more than it may.
    Raises StorageFull if there is no room for the copy.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    try:
        with open_text_file(path, kind) as source, copy.open("wb") as target:
            n_bytes = 0
            while piece := source.read(_PIECE):
                n_bytes += len(piece)
                if kind == "gzip":
                    limits.check_unpacked(n_bytes, f"{path.name!r} holds", UNPACK)
                target.write(lines.decode(piece).encode())
            target.write(lines.decode(b"", final=True).encode())
    except UnicodeError:
        raise InvalidData(f"{path.name!r} is not written in {encoding}.") from None
    except EOFError:
        raise InvalidData(f"{path.name!r} ends in the middle.") from None
    except OSError as error:
        if error.errno is None or isinstance(error, gzip.BadGzipFile):
            raise InvalidData(f"{path.name!r} is no readable gzip file.") from None
        raise no_room(
            copy.parent,
            "A copy of the table in UTF-8 goes there; TMPDIR names another folder.",
        ) from None
