"""`coterie demo`: the command; what it runs is :mod:`.demonstration`."""

from __future__ import annotations

from pathlib import Path

import click

from clustering_protocols.common.extras import require_service
from party_sdk.cli.terminal.output import json_option


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("coterie-demo"),
    show_default=True,
    help="Folder to write data, labels and logs to.",
)
@json_option
def demo(out: Path, *, as_json: bool) -> None:
    """Run an analyst and four parties on this machine.

    The data are the breast cancer measurements that come with scikit-learn: 569 people,
    30 features, two classes. Two parties hold 15 features of one half of the people,
    two hold the same features of the other half. The labels are compared with those of
    clustering the pooled data, and the reports of the session are written.
    """
    from party_sdk.cli.terminal.progress import Heartbeat

    require_service("The demo starts the service")
    with Heartbeat() as beat:
        beat.now("four tables are cut from one")
        from party_sdk.cli.lab.demonstration import show  # takes seconds on a cold disk

        show(out, beat, as_json=as_json)
