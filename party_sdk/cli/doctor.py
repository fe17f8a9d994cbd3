"""`coterie doctor`: what stands between this machine and an analyst."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.arguments import read_invitation
from party_sdk.cli.options.common import home_option
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.home.addresses import mistaken
from party_sdk.home.files import default_home

if TYPE_CHECKING:
    from party_sdk.analyst_client.diagnosis import CheckResult


@click.command()
@click.argument("invitation", required=False)
@home_option
@json_option
@click.pass_context
def doctor(
    context: click.Context,
    invitation: str | None,
    home: Path | None,
    *,
    as_json: bool,
) -> None:
    """Check this machine, and the way to an analyst.

    INVITATION is yours (@FILE, or - for standard input), or the analyst's address alone.
    Looks at permissions, room on the disk, proxy, address, connection, certificate and
    clock; each finding has its remedy. Nothing of an invitation but the address is used.
    Ends with 1 if something is wrong.
    """
    from party_sdk.analyst_client.diagnosis import look_at_analyst, look_at_home

    checks: Iterator[CheckResult] = look_at_home(home or default_home())
    if invitation is not None:
        address = _address(context, invitation)
        checks = chain(checks, look_at_analyst(address))
    found = []
    for finding in checks:  # each is said once it is known: some wait for an answer
        found.append(finding)
        if not as_json:
            _show(finding)
    if as_json:
        say(json.dumps([asdict(finding) for finding in found]))
    if not all(finding.good for finding in found):
        context.exit(1)


def _show(finding: CheckResult) -> None:
    say(f"{'good ' if finding.good else 'WRONG'}  {finding.check}: {finding.said}")
    if finding.remedy:
        say(f"       What to do: {finding.remedy}")


def _address(context: click.Context, given: str) -> str:
    """Return the analyst's address of an invitation, or as it was given."""
    from party_sdk.analyst_client.invitations import Invitation

    read = read_invitation(context, context.command.params[0], given)
    if "#" not in read and not Path(read).exists():  # a file whose @ was forgotten
        if wrong := mistaken(read):
            raise click.UsageError(wrong, context)
        return read.rstrip("/")
    return Invitation.parse(read).url
