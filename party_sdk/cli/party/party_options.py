"""Options of `coterie party …` that name a home, gathered into one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.common import entropy_option, home_option, read_entropy
from party_sdk.cli.terminal.output import show_outage, show_silence
from party_sdk.home.files import default_home

if TYPE_CHECKING:
    from party_sdk.application.home import Home

Command = Callable[..., Any]


def option_words(here: Home) -> list[str]:
    """Return the options that another command of this party needs as well."""
    return [] if here.path == default_home() else ["--home", str(here.path)]


_number_option = click.option(
    "--confirm-safety-number",
    "safety_number",
    metavar="DIGITS",
    help="The safety number as the other members read it to you: another one stops the "
    "run before anything of your data is sent.",
)
_confirmed_option = click.option(
    "--confirmed-with",
    "confirmed_with",
    multiple=True,
    metavar="NAME",
    help="A member that read you the safety number itself; may be given several times. "
    "It counts as known, as if you had its card.",
)
_patience_option = click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="For how many seconds to try again while the analyst cannot be reached.",
)
_moved_option = click.option(
    "--moved",
    is_flag=True,
    help="The invitation names another address than the first one to this slot, and the "
    "coordinator confirmed that the analyst has moved there.",
)


_new_mapping_option = click.option(
    "--new-mapping",
    is_flag=True,
    help="The mapping is another one than this session is kept with, and it counts.",
)


def here_options(
    *,
    joins: bool = False,
    sends: bool = False,
    signs: bool = False,
    maps: bool = False,
) -> Callable[[Command], Command]:
    """Add the options that name a home; the command takes it as ``here``.

    ``joins``: those too of a command that takes a slot; ``sends``: of one
    that sends what comes of the data; ``signs``: of one that signs for the institution;
    ``maps``: of one that may read a table by another mapping than before.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run_with_options(
            *args: Any,
            home: Path | None,
            entropy_file: Path | None = None,
            moved: bool = False,
            safety_number: str | None = None,
            confirmed_with: tuple[str, ...] = (),
            patience: float = 300.0,
            new_mapping: bool = False,
            **rest: Any,
        ) -> Any:
            # not above: anyone who asks for help waits for no client
            from party_sdk.analyst_client.transport import Listeners
            from party_sdk.application.home import Home
            from party_sdk.cli.terminal.asker import TerminalAsker

            here = Home(
                path=home or default_home(),
                patience=patience,
                listeners=Listeners(on_outage=show_outage, on_silence=show_silence),
                entropy=read_entropy(entropy_file),
                asker=TerminalAsker(),
                moved=moved,
                safety_number=safety_number,
                confirmed_with=confirmed_with,
                new_mapping=new_mapping,
            )
            return command(*args, here=here, **rest)

        wrapped = home_option(run_with_options)
        if sends:
            wrapped = _number_option(_confirmed_option(wrapped))
            wrapped = _patience_option(wrapped)
        wrapped = _new_mapping_option(wrapped) if maps else wrapped
        wrapped = _moved_option(wrapped) if joins else wrapped
        return entropy_option(wrapped) if joins or signs else wrapped

    return decorate
