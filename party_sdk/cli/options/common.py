"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from clustering_protocols.common.errors import InvalidParameters
from party_sdk.home.addresses import mistaken
from party_sdk.home.own_packages import use_home

if TYPE_CHECKING:
    from party_sdk.coordinator.coordinator import Coordinator


def read_address(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Return the address of an analyst; say what to write where it is none."""
    if value and (wrong := mistaken(value)):
        name = parameter.human_readable_name.lower()
        from_shell = context.get_parameter_source(name) is ParameterSource.ENVIRONMENT
        raise click.UsageError(
            f"{'COTERIE_URL' if from_shell else '--url'} {wrong}", context
        )
    return value


def _follow_home(
    context: click.Context, parameter: click.Parameter, home: Path | None
) -> Path | None:
    """Let the policy of the home name the protocol packages of this command."""
    del context, parameter
    use_home(home)
    return home


url_option = click.option(
    "--url",
    envvar="COTERIE_URL",
    default="http://127.0.0.1:8443",
    callback=read_address,
    help="Address of the analyst: https://…, by default port 8443 here. [COTERIE_URL]",
)
key_option = click.option(
    "--key", help="A coordinator's key. [COTERIE_KEY_FILE; COTERIE_KEY]"
)
home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="COTERIE_HOME",
    callback=_follow_home,
    help="Folder of secrets and memory. [COTERIE_HOME; ~/.coterie]",
)
entropy_option = click.option(
    "--entropy-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of 64 hex digits to draw from instead of the operating system: repeats a "
    "run, for tests alone.",
)
param_option = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the protocol, its value as JSON, e.g. n_clusters=3; may be given "
    "several times.",
)

SEED = click.IntRange(0, 2**53 - 1)
_GROUPS = click.IntRange(1, 1000)
rows_option = click.option(
    "--rows",
    type=click.IntRange(1),
    help="About how many rows all parties have together: says what will be large. "
    "Nothing of it stands in the terms.",
)
schema_option = click.option(
    "--schema",
    "schema_files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The data dictionary of the columns, by which parties find them; once for each "
    "column group, in their order.",
)
row_groups_option = click.option(
    "--row-groups", type=_GROUPS, help="Number of row groups: each holds other people."
)
column_groups_option = click.option(
    "--column-groups",
    type=_GROUPS,
    help="Number of column groups: each holds other features.",
)


def read_entropy(path: Path | None) -> bytes | None:
    """Return the 32 bytes in a file of 64 hex digits."""
    if path is None:
        return None
    try:
        entropy = bytes.fromhex(path.read_text().strip())
    except ValueError:
        entropy = b""
    if len(entropy) != 32:
        raise InvalidParameters("The entropy file must hold 64 hex digits.")
    return entropy


class LongCommand(click.Command):
    """A command of many options: --help shows some of them, --help-all shows all.

    shown: names of the options that --help shows, without their dashes.
    """

    def __init__(self, *args: Any, shown: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._shown = frozenset(f"--{name}" for name in shown.split())

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with --help-all before --help."""
        *others, usual = super().get_params(ctx)
        return [
            *others,
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=self._show_all,
                help="Show every option, and exit.",
            ),
            usual,
        ]

    def _show_all(
        self, context: click.Context, parameter: click.Parameter, value: object
    ) -> None:
        if value and not context.resilient_parsing:
            context.meta[parameter.human_readable_name] = True
            click.echo(context.get_help(), color=context.color)
            context.exit()

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options that are shown."""
        everything = "help_all" in ctx.meta
        records = [
            record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
            and (everything or self._shown.intersection(parameter.opts))
        ]
        with formatter.section("Options"):
            formatter.write_dl(records)


class _Moment(click.ParamType[datetime]):
    """A time that a person writes."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        from coterie_pages.formatting import read_moment

        try:
            return read_moment(str(value), datetime.now(UTC))
        except ValueError as error:
            self.fail(f"{value!r}: {error}.", param, ctx)


MOMENT: Final = _Moment()
"""A date, a time or an age: the type of an option."""


def pass_coordinator(command: Callable[..., Any]) -> Callable[..., Any]:
    """Connect when the command runs, so that its --help needs no analyst."""

    @click.pass_obj
    @functools.wraps(command)
    def run_with_coordinator(
        connect: Callable[[], Coordinator], /, **options: Any
    ) -> Any:
        return command(connect(), **options)

    return run_with_coordinator
