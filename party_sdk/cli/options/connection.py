"""Commands that reach the analyst as a coordinator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.common import ca_option

if TYPE_CHECKING:
    from party_sdk.coordinator.coordinator import Coordinator


def pass_coordinator(command: Callable[..., Any]) -> Callable[..., Any]:
    """Connect when the command runs, so that its --help needs no analyst.

    The command takes ``--ca-file`` too, and not its group alone.
    """

    @ca_option
    @click.pass_obj
    @functools.wraps(command)
    def run_with_coordinator(
        connect: Callable[[Path | None], Coordinator],
        /,
        ca_file: Path | None,
        **options: Any,
    ) -> Any:
        return command(connect(ca_file), **options)

    return run_with_coordinator
