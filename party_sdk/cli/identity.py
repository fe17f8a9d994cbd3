"""`coterie identity …`: who this institution is, and whose cards it trusts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.common import home_option
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.home.files import default_home

if TYPE_CHECKING:
    from clustering_protocols.secrecy.identities import Institution


@click.group()
def identity() -> None:
    """Make, show and trust identities (for parties and coordinators)."""


@identity.command()
@click.argument("name")
@click.option(
    "--replace",
    is_flag=True,
    help="Make another identity in place of the one that is there, which is lost.",
)
@home_option
@json_option
def new(name: str, home: Path | None, *, replace: bool, as_json: bool) -> None:
    """Make the identity of your institution, called NAME.

    The private key stays in the home folder, readable by its owner alone. One that was
    made on first use has no name, and gets this one.
    """
    from party_sdk.home.identities import OwnIdentity

    own = OwnIdentity(home or default_home()).make(name, replace=replace)
    _show(own, as_json=as_json)


@identity.command()
@home_option
@json_option
def card(home: Path | None, *, as_json: bool) -> None:
    """Print your card, to hand to coordinators and parties.

    It is a small JSON file without secrets. Hand it over so that they know whose it is:
    in person, or with the fingerprint, which stands on standard error, read to them by
    telephone.
    """
    from clustering_protocols.common.errors import NotReady
    from clustering_protocols.secrecy.identities import fingerprint
    from party_sdk.home.identities import OwnIdentity

    own = OwnIdentity(home or default_home()).load()
    if not own.name:
        raise NotReady("Your identity has no name yet: coterie identity new NAME.")
    if not as_json:
        say(f"{own.name}  {fingerprint(own.key)}", err=True)
    say(own.card.model_dump_json())


@identity.command()
@click.argument(
    "file", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--list", "is_list", is_flag=True, help="List whom you know.")
@click.option("--forget", metavar="NAME", help="Know NAME no longer.")
@home_option
@json_option
def trust(
    file: Path | None,
    forget: str | None,
    home: Path | None,
    *,
    is_list: bool,
    as_json: bool,
) -> None:
    """Remember whose key the card in FILE is.

    From then on anyone who gives this name with another key is refused.
    """
    from clustering_protocols.secrecy.identities import Card
    from party_sdk.home.identities import TrustedInstitutions

    if [file is not None, is_list, forget is not None].count(True) != 1:
        raise click.UsageError("Give the FILE of a card, --list, or --forget NAME.")
    known = TrustedInstitutions(home or default_home())
    if forget is not None:
        known.forget(forget)
    if file is not None:
        known.trust(Card.read(file.read_bytes()))
    _list(dict(known.read()), as_json=as_json)


def _show(own: Institution, *, as_json: bool) -> None:
    if as_json:
        say(json.dumps({"name": own.name, "key": own.key}))
        return
    _list({own.name or "(no name)": own.key}, as_json=False)


def _list(known: dict[str, str], *, as_json: bool) -> None:
    from clustering_protocols.secrecy.identities import fingerprint

    if as_json:
        say(json.dumps(known))
        return
    for name, key in known.items():
        say(f"{name}  {fingerprint(key)}")
