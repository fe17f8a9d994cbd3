"""`coterie party …`: what a party operator does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from clustering_protocols.registry import risk_sentences
from clustering_protocols.secrecy.keys import safety_number
from party_sdk._files import default_home
from party_sdk._transport import Transport
from party_sdk.cli.options import (
    ca_option,
    entropy_option,
    home_option,
    http_option,
    read_entropy,
)
from party_sdk.cli.output import json_option, show_progress
from party_sdk.frames import Result, open_table
from party_sdk.invitations import Invitation
from party_sdk.memory import PartyFolder
from party_sdk.participant import Party
from party_sdk.policy import Policy

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _data_options(command: _Command) -> _Command:
    for option in (
        click.option(
            "--columns", help="Comma-separated; by default all but the id column."
        ),
        click.option("--id-column", help="Names the rows; it never leaves."),
        click.option(
            "--data",
            required=True,
            type=click.Path(path_type=Path),
            help="CSV or Parquet file.",
        ),
    ):
        command = option(command)
    return command


def _policy_options(command: _Command) -> _Command:
    for option in (
        click.option(
            "--minimum-rows",
            default=Policy().minimum_rows,
            show_default=True,
            help="Guard: fewest rows of this party.",
        ),
        click.option(
            "--protocol",
            "protocols",
            multiple=True,
            help="Guard: protocols to take part in; all by default.",
        ),
        click.option(
            "--accept-risk",
            "accepted",
            multiple=True,
            metavar="CODE",
            help="A risk code that you have read and accept.",
        ),
    ):
        command = option(command)
    return command


@click.group()
def party() -> None:
    """Join a session with an invitation and run it to the labels."""


@party.command()
@click.argument("invitation")
@_policy_options
@home_option
@ca_option
@http_option
@entropy_option
@json_option
def join(
    invitation: str,
    accepted: tuple[str, ...],
    protocols: tuple[str, ...],
    minimum_rows: int,
    home: Path | None,
    ca_file: Path | None,
    entropy_file: Path | None,
    *,
    allow_http: bool,
    as_json: bool,
) -> None:
    """Show what an invitation is for, and check it against your policy.

    Nothing of your data is read or sent.
    """
    with _join(
        invitation,
        _policy(accepted, protocols, minimum_rows),
        home,
        ca_file,
        entropy_file,
        allow_http=allow_http,
    ) as member:
        terms = member.terms
    sentences = risk_sentences(terms.protocol.name)
    if as_json:
        click.echo(terms.model_dump_json())
        return
    click.echo(
        f"{terms.title or terms.session}: {terms.protocol.name}, as {_slot(member)}"
    )
    click.echo(f"parameters {json.dumps(terms.protocol.params)}")
    for code in terms.risks:
        click.echo(f"accepted {code}: {sentences[code]}")
    click.echo("Next: coterie party run INVITATION --data FILE", err=True)


@party.command()
@click.argument("invitation")
@_data_options
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    default=Path("labels.csv"),
    show_default=True,
    help="Where to write the labels (CSV or Parquet).",
)
@_policy_options
@home_option
@ca_option
@http_option
@entropy_option
@json_option
def run(
    invitation: str,
    data: Path,
    id_column: str | None,
    columns: str | None,
    labels: Path,
    accepted: tuple[str, ...],
    protocols: tuple[str, ...],
    minimum_rows: int,
    home: Path | None,
    ca_file: Path | None,
    entropy_file: Path | None,
    *,
    allow_http: bool,
    as_json: bool,
) -> None:
    """Take part until there are labels. Interrupted, run it again: it goes on."""
    member = _join(
        invitation,
        _policy(accepted, protocols, minimum_rows),
        home,
        ca_file,
        entropy_file,
        allow_http=allow_http,
    )
    with member:
        _run(member, data, id_column, columns, labels, as_json=as_json)


@party.command()
@click.argument("session_id")
@click.argument("slot")
@_data_options
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    default=Path("labels.csv"),
    show_default=True,
    help="Where to write the labels (CSV or Parquet).",
)
@_policy_options
@home_option
@ca_option
@http_option
@json_option
def resume(
    session_id: str,
    slot: str,
    data: Path,
    id_column: str | None,
    columns: str | None,
    labels: Path,
    accepted: tuple[str, ...],
    protocols: tuple[str, ...],
    minimum_rows: int,
    home: Path | None,
    ca_file: Path | None,
    *,
    allow_http: bool,
    as_json: bool,
) -> None:
    """Go on from what is kept on this disk, without the invitation."""
    kept = PartyFolder(home or default_home(), session_id, slot).load_identity()
    member = _join(
        kept.invitation,
        _policy(accepted, protocols, minimum_rows),
        home,
        ca_file,
        None,
        allow_http=allow_http,
    )
    with member:
        _run(member, data, id_column, columns, labels, as_json=as_json)


@party.command()
@click.argument("session_id")
@click.argument("slot")
@home_option
@click.confirmation_option(prompt="Delete memory, keys and token of this party?")
def forget(session_id: str, slot: str, home: Path | None) -> None:
    """Delete everything that is kept of a session here, secrets included."""
    folder = PartyFolder(home or default_home(), session_id, slot)
    folder.load_identity()
    folder.forget()


def _policy(
    accepted: tuple[str, ...], protocols: tuple[str, ...], minimum_rows: int
) -> Policy:
    return Policy(
        accepted_risks=frozenset(accepted),
        protocols=frozenset(protocols) or None,
        minimum_rows=minimum_rows,
    )


def _join(
    invitation: str,
    policy: Policy,
    home: Path | None,
    ca_file: Path | None,
    entropy_file: Path | None,
    *,
    allow_http: bool,
) -> Party:
    url = Invitation.parse(invitation).url
    return Party.join(
        invitation,
        policy=policy,
        home=home,
        entropy=read_entropy(entropy_file),
        transport=Transport(url, ca_file=ca_file, allow_http=allow_http),
    )


def _run(
    member: Party,
    data: Path,
    id_column: str | None,
    columns: str | None,
    labels: Path,
    *,
    as_json: bool,
) -> None:
    chosen = [name.strip() for name in columns.split(",")] if columns else None
    source = open_table(data, id_column=id_column, columns=chosen)
    result = member.run(source, on_progress=show_progress)
    path = result.save(labels)
    if as_json:
        click.echo(json.dumps(_document(member, result, path)))
        return
    sizes = [] if result.cluster_sizes is None else result.cluster_sizes.tolist()
    click.echo(f"{len(result.labels)} labels in {path}")
    if sizes:
        click.echo(f"rows of all parties per cluster: {', '.join(map(str, sizes))}")
    for name, value in result.report.items():
        click.echo(f"{name}: {value}")


def _document(member: Party, result: Result, path: Path) -> dict[str, Any]:
    agreement = member.folder.load_agreement() or b""
    sizes = result.cluster_sizes
    return {
        "session": member.terms.session,
        "slot": _slot(member),
        "labels": str(path),
        "n_rows": len(result.labels),
        "cluster_sizes": None if sizes is None else sizes.tolist(),
        "report": dict(result.report),
        "safety_number": safety_number(agreement),
    }


def _slot(member: Party) -> str:
    return member.invitation.slot
