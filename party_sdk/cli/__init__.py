"""The command `coterie`, which contains all other commands."""

from __future__ import annotations

import click

from party_sdk.cli.terminal.output import RootGroup, say


def _show_version(context: click.Context, _: click.Parameter, value: object) -> None:
    if value and not context.resilient_parsing:
        from coterie.build import read_build

        say(f"coterie, version {read_build()}")
        context.exit()


@click.group(cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
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

    New here? 'coterie try FILE' clusters your own table. 'coterie advise' helps to
    choose a protocol. The page docs/tutorial.md follows a session step by step. The
    page docs/party.md explains tab completion.

    \b
    Exit code 0: done.
    Exit code 1: unexpected error.
    Exit code 2: wrong usage.
    Exit code 3: refused at home by a guard, or a risk is not accepted.
                 Nothing of the refused round was sent.
    Exit code 4: the session ended without a result.
    Exit code 5: the input cannot be used.
    Exit code 6: the analyst cannot be reached, or cannot answer now.
    Exit code 7: the analyst refused, or it is not possible now.
    Exit code 130: stopped by Ctrl-C.
    """  # noqa: D301  click reads the character
