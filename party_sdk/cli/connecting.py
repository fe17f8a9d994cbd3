"""Commands that reach the analyst as a coordinator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from party_sdk.coordinator import Coordinator


def pass_coordinator(command: Callable[..., Any]) -> Callable[..., Any]:
    """Connect when the command runs, so that its --help needs no analyst."""

    @click.pass_obj
    @functools.wraps(command)
    def connected(connect: Callable[[], Coordinator], /, **options: Any) -> Any:
        return command(connect(), **options)

    return connected
