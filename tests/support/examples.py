"""Examples of protocols, dealt out to parties."""

from __future__ import annotations

from typing import Any, TypeVar

from clustering_protocols import simulation
from clustering_protocols.contract import Example

_Kind = TypeVar("_Kind", bound=simulation.Session)


def dealt(example: Example[Any], seed: int) -> simulation.Split:
    """Return an example's rows by party."""
    return simulation.split(
        example.X,
        example.layout,
        seed,
        missing=example.missing,
        dictionary=example.sections.get("dictionary"),
    )


def begun(example: Example[Any], seed: int, kind: type[_Kind], **more: Any) -> _Kind:
    """Return a session of an example before its first round."""
    return kind(
        example.params,
        example.layout,
        dealt(example, seed).data,
        seed,
        **example.sections,
        **more,
    )
