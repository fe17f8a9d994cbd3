"""What is installed on request: libraries of an extra are asked for in one sentence."""

from __future__ import annotations

from importlib.util import find_spec

from clustering_protocols.common.errors import InvalidParameters


def require_extra(extra: str, why: str, *packages: str) -> None:
    """Refuse what cannot be done without the libraries of an extra.

    extra: as ``pip install 'coterie[extra]'`` names it.
    why: what needs which library: a sentence without its full stop.
    packages: the names by which they are imported.

    Raises InvalidParameters if one of them is not installed.
    """
    if any(find_spec(package) is None for package in packages):
        raise InvalidParameters(
            f"{why}, which is not installed here.",
            remedy=f"pip install 'coterie[{extra}]'",
        )


def require_service(why: str) -> None:
    """Refuse what cannot be done without the analyst; see :func:`require_extra`."""
    require_extra("analyst", why, "sqlalchemy", "fastapi")
