"""What an operator reads while the analyst does not answer, on standard error."""

from __future__ import annotations

import time

from party_sdk.cli.terminal.output import say


def show_outage(outage: str) -> None:
    """Say what is wrong with the analyst, or that it answers again."""
    if outage:
        say(f"The analyst {outage}; trying again since {_now()}.", err=True)
    else:
        say(f"The analyst answers again, at {_now()}.", err=True)


def show_silence(host: str) -> None:
    """Say that no answer has come yet."""
    say(
        f"No answer from the analyst at {host} yet; still waiting at {_now()}.",
        err=True,
    )


def _now() -> str:
    return time.strftime("%H:%M:%S")
