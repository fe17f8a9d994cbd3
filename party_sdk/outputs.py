"""Files that are written: tried before a run, and never in the place of another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from clustering_protocols.errors import GuardRefused, InvalidParameters
from party_sdk._files import write_private

_WRITTEN = "outputs.json"
_BEING_WRITTEN = "being written"
_PICTURES = frozenset(
    {".png", ".svg", ".pdf", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"}
)


def try_outputs(paths: Iterable[Path | None], source: Path, *, force: bool) -> None:
    """Refuse files that cannot be written, or that would replace what was read.

    Raises
    ------
    InvalidParameters
        If a folder is missing, or may not be written into, or what writes such a file
        is not installed.
    GuardRefused
        If a file is the one that is read.
    """
    for path in paths:
        if path is None:
            continue
        if path.is_dir() or not path.parent.is_dir():
            raise InvalidParameters(f"{path.name!r} cannot be written: no such folder.")
        if not force and _same(path, source):
            raise GuardRefused(
                f"{path.name!r} is the table that is read: name another file, or --force."
            )
        if path.suffix.lower() == ".xlsx":
            # not above: nothing is written by whoever only reads
            from party_sdk.results import require_excel

            require_excel()
        if path.suffix.lower() in _PICTURES:
            from party_sdk.plots import require_pictures

            require_pictures()
        fresh = path.with_name(f".{path.name}.new")
        try:
            fresh.touch()
            fresh.unlink()
        except OSError:
            raise InvalidParameters(f"{path.name!r} may not be written here.") from None


def keep_others(
    paths: Iterable[Path | None], home: Path | None, *, force: bool
) -> None:
    """Refuse to replace files, unless they are what this session wrote.

    Parameters
    ----------
    home : Path, optional
        The folder of a session, which remembers what was written.
    """
    written = {} if home is None else _written(home)
    for path in paths:
        if path is None or force or not (path.exists() or path.is_symlink()):
            continue
        known = written.get(str(path.resolve()))
        if path.is_symlink() or known not in {_digest(path), _BEING_WRITTEN}:
            stranger = (
                "" if home is None else ", and is nothing that this session wrote"
            )
            raise GuardRefused(
                f"{path.name!r} is there already{stranger}: name another file, or --force."
            )


@contextmanager
def remembered(paths: Iterable[Path | None], home: Path) -> Iterator[None]:
    """Note which files a session writes within the block.

    Killed in it, the session may write them again: what is there is its own, or was
    allowed to be replaced.
    """
    names = {str(path.resolve()): path for path in paths if path is not None}
    _note(home, dict.fromkeys(names, _BEING_WRITTEN))
    yield
    _note(home, {name: _digest(path) for name, path in names.items()})


def _note(home: Path, digests: Mapping[str, str]) -> None:
    written = {**_written(home), **digests}
    write_private(home / _WRITTEN, json.dumps(written).encode())


def _written(home: Path) -> dict[str, str]:
    path = home / _WRITTEN
    try:
        found: dict[str, str] = json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError:  # it was damaged: then nothing counts as written by us
        return {}
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _same(path: Path, source: Path) -> bool:
    try:
        return path.exists() and path.samefile(source)
    except OSError:
        return False


def write_whole(content: bytes, path: Path) -> None:
    """Write a file in one step; a link is replaced, not followed.

    Raises
    ------
    InvalidParameters
        If it cannot be written there.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        raise InvalidParameters(f"{path.name!r} cannot be written there.") from None
    finally:
        fresh.unlink(missing_ok=True)
