"""The one command `coterie`."""

from __future__ import annotations

import click

from party_sdk.cli.output import ExplainedGroup


@click.group(
    cls=ExplainedGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="coterie")
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
