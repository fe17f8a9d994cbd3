"""Checks for optional libraries, with errors that name the extra to install."""

from __future__ import annotations

from importlib.util import find_spec

from clustering_protocols.common.errors import InvalidParameters


def require_extra(extra: str, why: str, *packages: str) -> None:
    """Raise :class:`InvalidParameters` unless the libraries of an extra are installed.

    extra: the name of the extra, as in ``pip install 'coterie[extra]'``.
    why: the feature and the library that it needs, as a sentence without its full stop.
    packages: the names under which the libraries are imported.
    """
    if any(find_spec(package) is None for package in packages):
        raise InvalidParameters(
            f"{why}, which is not installed here.",
            remedy=f"pip install 'coterie[{extra}]'",
        )


def require_service(why: str) -> None:
    """Raise :class:`InvalidParameters` unless the analyst service is installed."""
    require_extra("analyst", why, "sqlalchemy", "fastapi")
