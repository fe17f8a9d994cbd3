"""The one command `coterie`."""

from __future__ import annotations

import click

from party_sdk.cli.output import ExplainedGroup, say


def _show_version(context: click.Context, _: click.Parameter, value: object) -> None:
    if value and not context.resilient_parsing:
        from coterie_build import read_build

        say(f"coterie, version {read_build()}")
        context.exit()


@click.group(
    cls=ExplainedGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, the commit and the schema, and exit.",
)
def main() -> None:
    """Find clusters over data that institutions may not pool.

    New here? 'coterie demo' shows the whole of it on this machine, 'coterie advise'
    helps to choose a protocol, and docs/tutorial.md follows a session step by step.
    docs/party.md says how to switch on the tab key.

    Exit codes: 0 done, 1 unexpected error, 2 wrong usage, 3 refused at home by a guard
    or a risk that is not accepted (nothing of that round was sent), 4 the session ended
    without a result, 5 the input cannot be used, 6 the analyst cannot be reached, 7 the
    analyst refused, or it cannot be done now, 130 stopped by Ctrl-C.
    """
