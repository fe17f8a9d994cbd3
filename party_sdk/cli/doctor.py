"""`coterie doctor`: what stands between this machine and an analyst."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from party_sdk.cli.options import HomeOptions, read_invitation
from party_sdk.cli.parameters import argument, command
from party_sdk.cli.terminal.output import Output
from party_sdk.home.addresses import mistaken

if TYPE_CHECKING:
    from party_sdk.analyst_client.diagnosis import CheckResult


@command()
def doctor(
    context: click.Context,
    invitation: Annotated[str | None, argument()] = None,
    *,
    home: HomeOptions,
) -> Output:
    """Check this machine, and the way to an analyst.

    INVITATION is yours (@FILE, or - for standard input), or the analyst's address alone.
    Looks at permissions, room on the disk, proxy, address, connection, certificate and
    clock; each finding has its remedy. Nothing of an invitation but the address is used.
    Ends with 1 if something is wrong.
    """
    from party_sdk.analyst_client.diagnosis import look_at_analyst, look_at_home

    checks: Iterator[CheckResult] = look_at_home(home.folder)
    if invitation is not None:
        checks = chain(checks, look_at_analyst(_address(context, invitation)))
    found: list[CheckResult] = []

    def lines() -> Iterator[str]:
        for finding in checks:  # each is said once it is known: some wait for an answer
            found.append(finding)
            mark = "good " if finding.good else "WRONG"
            yield f"{mark}  {finding.check}: {finding.said}"
            if finding.remedy:
                yield f"       What to do: {finding.remedy}"

    def document() -> list[dict[str, object]]:
        found.extend(checks)
        return [asdict(finding) for finding in found]

    return Output(
        document, lines(), lambda: 0 if all(finding.good for finding in found) else 1
    )


def _address(context: click.Context, given: str) -> str:
    """Return the analyst's address of an invitation, or as it was given."""
    from party_sdk.analyst_client.invitations import Invitation

    read = read_invitation(context, context.command.params[0], given)
    if "#" not in read and not Path(read).exists():  # a file whose @ was forgotten
        if wrong := mistaken(read):
            raise click.UsageError(wrong, context)
        return read.rstrip("/")
    return Invitation.parse(read).url
