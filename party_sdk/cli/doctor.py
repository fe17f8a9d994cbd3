"""`coterie doctor`: check this machine and its connection to an analyst."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from party_sdk.cli.options import HomeOptions, read_invitation
from party_sdk.cli.parameters import argument, command
from party_sdk.cli.terminal.output import Output
from party_sdk.home.addresses import address_advice

if TYPE_CHECKING:
    from party_sdk.analyst_client.diagnosis import CheckResult


@command()
def doctor(
    context: click.Context,
    invitation: Annotated[str | None, argument()] = None,
    *,
    home: HomeOptions,
) -> Output:
    """Check this machine and its connection to an analyst.

    INVITATION is your invitation (@FILE, or - for standard input), or only the address
    of the analyst. The command checks permissions, disk space, proxy, address,
    connection, certificate and clock, and suggests a remedy for each problem. Of an
    invitation, it uses only the address. The exit code is 1 if there is a problem.
    """
    from party_sdk.analyst_client.diagnosis import check_analyst, check_home

    checks: Iterator[CheckResult] = check_home(home.folder)
    if invitation is not None:
        checks = chain(checks, check_analyst(_parse_address(context, invitation)))
    results: list[CheckResult] = []

    def lines() -> Iterator[str]:
        for result in checks:  # print each at once: some take long
            results.append(result)
            mark = "good " if result.is_ok else "WRONG"
            yield f"{mark}  {result.check}: {result.text}"
            if result.remedy:
                yield f"       What to do: {result.remedy}"

    def document() -> list[dict[str, object]]:
        results.extend(checks)
        return [
            {
                "check": result.check,
                "good": result.is_ok,
                "said": result.text,
                "remedy": result.remedy,
            }
            for result in results
        ]

    return Output(
        document, lines(), lambda: 0 if all(result.is_ok for result in results) else 1
    )


def _parse_address(context: click.Context, argument: str) -> str:
    from party_sdk.analyst_client.invitations import Invitation

    text = read_invitation(context, context.command.params[0], argument)
    if "#" not in text and not Path(text).exists():  # the user may have forgotten @
        if problem := address_advice(text):
            raise click.UsageError(problem, context)
        return text.rstrip("/")
    return Invitation.parse(text).url
