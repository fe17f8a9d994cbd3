"""Optional libraries: an error names the extra that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from clustering_protocols.common.errors import InvalidParameters


def require_extra(extra: str, why: str, *packages: str) -> None:
    """Raise :class:`InvalidParameters` unless the libraries of an extra are installed.

    extra: as ``pip install 'coterie[extra]'`` names it.
    why: which feature needs which library, as a sentence without its full stop.
    packages: the names by which they are imported.
    """
    if any(find_spec(package) is None for package in packages):
        raise InvalidParameters(
            f"{why}, which is not installed here.",
            remedy=f"pip install 'coterie[{extra}]'",
        )


def require_service(why: str) -> None:
    """Raise :class:`InvalidParameters` unless the analyst is installed."""
    require_extra("analyst", why, "sqlalchemy", "fastapi")
