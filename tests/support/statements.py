"""One stock of compiled statements for all databases of a process.

SQLAlchemy keeps what it compiled for each engine. Nearly every test of the service has
an engine of its own, and would compile for it what the test before had compiled.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect

_create_engine = sa.create_engine
_compiled: dict[str, Any] = {}


def share() -> None:
    """Let all engines that are made from now on find what any of them compiled."""
    # their keys hold the dialect: all of a kind speak to one server, or to one library
    DefaultDialect.__eq__ = _are_alike  # type: ignore[method-assign,assignment]
    DefaultDialect.__hash__ = _of_kind  # type: ignore[method-assign,assignment]
    sa.create_engine = _sharing


def _sharing(url: str | sa.URL, **options: Any) -> sa.Engine:
    engine = _create_engine(url, **options)
    engine._compiled_cache = _compiled.setdefault(
        engine.dialect.name, engine._compiled_cache
    )
    return engine


def _are_alike(one: DefaultDialect, other: object) -> bool:
    return type(one) is type(other)


def _of_kind(one: DefaultDialect) -> int:
    return hash(type(one))
