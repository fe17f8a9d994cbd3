"""`coterie doctor`: checks of this machine and of its connection to an analyst."""

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
    """Check this machine, and its connection to an analyst.

    INVITATION is yours (@FILE, or - for standard input), or just the analyst's address.
    Checks permissions, disk space, proxy, address, connection, certificate and
    clock; each finding has its remedy. Nothing of an invitation but the address is used.
    Ends with 1 if something is wrong.
    """
    from party_sdk.analyst_client.diagnosis import check_analyst, check_home

    checks: Iterator[CheckResult] = check_home(home.folder)
    if invitation is not None:
        checks = chain(checks, check_analyst(_address(context, invitation)))
    results: list[CheckResult] = []

    def lines() -> Iterator[str]:
        for result in checks:  # printed one by one, since some wait for an answer
            results.append(result)
            mark = "good " if result.good else "WRONG"
            yield f"{mark}  {result.check}: {result.text}"
            if result.remedy:
                yield f"       What to do: {result.remedy}"

    def document() -> list[dict[str, object]]:
        results.extend(checks)
        return [
            {
                "check": result.check,
                "good": result.good,
                "said": result.text,
                "remedy": result.remedy,
            }
            for result in results
        ]

    return Output(
        document, lines(), lambda: 0 if all(result.good for result in results) else 1
    )


def _address(context: click.Context, argument: str) -> str:
    from party_sdk.analyst_client.invitations import Invitation

    text = read_invitation(context, context.command.params[0], argument)
    if "#" not in text and not Path(text).exists():  # else a file whose @ was forgotten
        if problem := address_advice(text):
            raise click.UsageError(problem, context)
        return text.rstrip("/")
    return Invitation.parse(text).url
