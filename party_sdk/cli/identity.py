"""`coterie identity …`: manage your institution's identity and the cards it trusts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import click

from clustering_protocols.common.errors import NotReady
from party_sdk.cli.options import FILE, HomeOptions
from party_sdk.cli.parameters import argument, command, option
from party_sdk.cli.terminal.output import Output, say


@click.group()
def identity() -> None:
    """Create, show and trust identities (for parties and coordinators)."""


@command(identity)
def new(
    name: Annotated[str, argument()],
    *,
    replace: Annotated[
        bool,
        option("Create another identity in place of the existing one, which is lost."),
    ] = False,
    home: HomeOptions,
) -> Output:
    """Create the identity of your institution, called NAME.

    The private key stays in the home folder, and only its owner can read it. An
    identity that was created on first use has no name, and gets this one.
    """
    from party_sdk.home.identities import OwnIdentity

    institution = OwnIdentity(home.folder).create(name, replace=replace)
    keys = {institution.name or "(no name)": institution.key}
    return Output({"name": institution.name, "key": institution.key}, _key_lines(keys))


@command(identity)
def card(*, home: HomeOptions) -> Output:
    """Print your card, which you give to coordinators and parties.

    The card is a small JSON file without secrets. The recipients must know that it is
    yours: hand it over in person, or read its fingerprint (printed to standard error)
    to them over the telephone.
    """
    from clustering_protocols.secrecy.identities import fingerprint
    from party_sdk.home.identities import OwnIdentity

    institution = OwnIdentity(home.folder).load()
    if not institution.name:
        raise NotReady("Your identity has no name yet: coterie identity new NAME.")
    say(f"{institution.name}  {fingerprint(institution.key)}", err=True)
    text = institution.card.model_dump_json()
    return Output(text, [text])


@command(identity)
def trust(
    file: Annotated[Path | None, argument(type=FILE)] = None,
    *,
    is_list: Annotated[
        bool, option("List the institutions that you trust.", "--list")
    ] = False,
    forget: Annotated[str | None, option("Stop trusting NAME.", metavar="NAME")] = None,
    home: HomeOptions,
) -> Output:
    """Trust the institution whose card is in FILE.

    From then on, commands refuse anyone who uses its name with a different key.
    """
    from clustering_protocols.secrecy.identities import Card
    from party_sdk.home.identities import TrustedInstitutions

    if [file is not None, is_list, forget is not None].count(True) != 1:
        raise click.UsageError("Give the FILE of a card, --list, or --forget NAME.")
    trusted = TrustedInstitutions(home.folder)
    if forget is not None:
        trusted.forget(forget)
    if file is not None:
        trusted.trust(Card.read(file.read_bytes()))
    keys = dict(trusted.keys_by_name())
    return Output(keys, _key_lines(keys))


def _key_lines(keys: Mapping[str, str]) -> Iterator[str]:
    from clustering_protocols.secrecy.identities import fingerprint

    yield from (f"{name}  {fingerprint(key)}" for name, key in keys.items())
