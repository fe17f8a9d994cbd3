"""Output files, which are checked before a run and never overwrite unrelated files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from typing import Protocol

from clustering_protocols.common.errors import GuardRefused, InvalidParameters
from party_sdk.home.disk_room import report_full_disk

_BEING_WRITTEN = "being written"


class WritingSession(Protocol):
    """A session that records the files that were written for it."""

    @property
    def written_files(self) -> Mapping[str, str]:
        """Return the digest of each file, by its path."""

    def save_written_files(self, digests: Mapping[str, str]) -> None:
        """Store the digest of each file, by its path."""


def check_outputs(paths: Iterable[Path | None], source: Path, *, force: bool) -> None:
    """Raise if a file cannot be written, or would replace the input.

    Raises InvalidParameters if a folder is missing or not writable, or if the library
    for a file is not installed. Raises GuardRefused if a file is the table that is
    read.
    """
    for path in paths:
        if path is None:
            continue
        if path.is_dir() or not path.parent.is_dir():
            raise InvalidParameters(f"{path.name!r} cannot be written: no such folder.")
        with suppress(OSError):
            if not force and path.exists() and path.samefile(source):
                raise GuardRefused(
                    f"{path.name!r} is the table that is read: choose another file, or "
                    "use --force."
                )
        if path.suffix.lower() == ".xlsx":
            # Imported here, because most commands write no such file.
            from party_sdk.results.label_files import require_excel

            require_excel()
        fresh = path.with_name(f".{path.name}.new")
        try:
            fresh.touch()
            fresh.unlink()
        except OSError:
            raise InvalidParameters(f"{path.name!r} cannot be written here.") from None


def refuse_overwriting(
    paths: Iterable[Path | None], session: WritingSession | None, *, force: bool
) -> None:
    """Raise GuardRefused if a file exists, unless this session wrote it."""
    digests = {} if session is None else session.written_files
    for path in paths:
        if path is None or force or not (path.exists() or path.is_symlink()):
            continue
        digest = digests.get(str(path.resolve()))
        if path.is_symlink() or digest not in {_hash_of(path), _BEING_WRITTEN}:
            note = "" if session is None else ", and was not written by this session"
            raise GuardRefused(
                f"{path.name!r} already exists{note}: choose another file, or use --force."
            )


@contextmanager
def record_outputs(
    paths: Iterable[Path | None], session: WritingSession
) -> Iterator[None]:
    """Record the files that a session writes in the block.

    The files are also recorded before the block, so that a session may replace its
    files after it was killed.
    """
    names = {str(path.resolve()): path for path in paths if path is not None}
    session.save_written_files(dict.fromkeys(names, _BEING_WRITTEN))
    yield
    session.save_written_files({name: _hash_of(path) for name, path in names.items()})


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_replacement(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` atomically; links are not followed.

    Raises StorageFull if the disk is full; the old file then remains.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        with report_full_disk(path.parent, f"{path.name!r} was to be written."):
            yield fresh
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_atomically(content: bytes, path: Path) -> None:
    """Write a file atomically; a symbolic link is replaced, not followed.

    Raises InvalidParameters if the file cannot be written. Raises StorageFull if the
    disk is full.
    """
    try:
        with atomic_replacement(path) as fresh:
            fresh.write_bytes(content)
    except OSError:
        raise InvalidParameters(f"{path.name!r} cannot be written there.") from None
