"""`coterie seal`: what is kept on this disk, under a passphrase."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from party_sdk.cli.options.common import home_option
from party_sdk.cli.terminal.output import say
from party_sdk.home.files import default_home


@click.command()
@click.option(
    "--keyring",
    is_flag=True,
    help="Draw a passphrase and keep it in the system's keyring (extra 'keyring').",
)
@click.option("--remove", is_flag=True, help="Write everything in clear again.")
@home_option
def seal(home: Path | None, *, keyring: bool, remove: bool) -> None:
    """Seal keys, tokens and memory of this home under a passphrase.

    Without it they lie in clear, readable by their owner alone. The passphrase is asked
    for, or read from COTERIE_PASSPHRASE_FILE or COTERIE_PASSPHRASE; anyone who forgets it
    has lost the home. An interrupted sealing continues when it is run again.
    """
    from party_sdk.home.encryption import SecretFiles

    if keyring and remove:
        raise click.UsageError("Give --keyring or --remove.")
    folder = home or default_home()
    files = SecretFiles(folder)
    if remove:
        say(f"{files.open()} files of {folder} lie in clear now.")
        return
    passphrase = _passphrase(folder, is_new=not files.is_sealed, keyring=keyring)
    say(f"{files.seal(passphrase)} files of {folder} are sealed.")


def _passphrase(folder: Path, *, is_new: bool, keyring: bool) -> str:
    from party_sdk.home.encryption import passphrase_for, passphrase_given, remember

    if not is_new:
        return passphrase_for(folder)
    if keyring:
        drawn = secrets.token_urlsafe(32)
        remember(folder, drawn)
        return drawn
    given = passphrase_given()
    if given:
        return given
    chosen: str = click.prompt(
        "Passphrase", hide_input=True, confirmation_prompt=True, err=True
    )
    return chosen
