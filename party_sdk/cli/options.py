"""Arguments and options that are shared by several commands."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import click
from click.core import ParameterSource

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.captions import CHOOSE, PREPARATION
from party_sdk.cli.parameters import ParameterSpec, argument, option, option_for_caption
from party_sdk.cli.terminal.output import print_outage, print_silence, say
from party_sdk.coordinator.option_parsing import parse_values
from party_sdk.home.addresses import address_advice
from party_sdk.home.files import default_home
from party_sdk.home.own_packages import use_home
from party_sdk.results.output_files import check_outputs, refuse_overwriting

if TYPE_CHECKING:
    from clustering_protocols.numerics.data_source import DataSource
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home
    from party_sdk.home.policy import Policy
    from party_sdk.tables import ReadOptions

Context = click.Context
FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
OUT: Final = click.Path(path_type=Path, dir_okay=False)
FOLDER: Final = click.Path(path_type=Path, file_okay=False)


# Arguments


def _refuse_empty(context: Context, parameter: click.Parameter, value: str) -> str:
    if not value.strip():  # e.g. from an unset shell variable
        raise click.UsageError(f"{parameter.human_readable_name} is empty.", context)
    return value


_INVITATION_TEXT: Final = "coterie.invitation"


def invitation_text() -> str:
    """Return the invitation argument of the running command, as it was typed."""
    return str(click.get_current_context().meta[_INVITATION_TEXT])


def read_invitation(context: Context, _: click.Parameter, value: str | None) -> str:
    """Return an invitation that was typed, or read it from a file or standard input."""
    if value is None:
        return ""
    if context.resilient_parsing:  # shell completion must not read files
        return value
    context.meta[_INVITATION_TEXT] = value
    if value == "-":
        return sys.stdin.readline().strip()
    if not value.startswith("@") and not value.endswith(".invitation"):
        return value
    path = value.removeprefix("@")
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise click.BadParameter(f"cannot read the file {path!r}.") from None


SessionName: TypeAlias = Annotated[str, argument(callback=_refuse_empty)]
MaybeSessionName: TypeAlias = Annotated[str | None, argument()]
Slot: TypeAlias = Annotated[str, argument()]
MaybeSlot: TypeAlias = Annotated[str | None, argument()]
InvitationArgument: TypeAlias = Annotated[str, argument(callback=read_invitation)]


# Options


def read_address(
    context: Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Return the address of an analyst, or raise a usage error if it is invalid."""
    if value and (problem := address_advice(value)):
        name = parameter.human_readable_name.lower()
        from_shell = context.get_parameter_source(name) is ParameterSource.ENVIRONMENT
        raise click.UsageError(
            f"{'COTERIE_URL' if from_shell else '--url'} {problem}", context
        )
    return value


def _use_home(_: Context, __: click.Parameter, home: Path | None) -> Path | None:
    use_home(home)
    return home


def _read_entropy(
    context: Context, _: click.Parameter, path: Path | None
) -> bytes | None:
    """Return 32 bytes from a file of 64 hexadecimal digits; None without a file."""
    if path is None or context.resilient_parsing:
        return None
    try:
        entropy = bytes.fromhex(path.read_text().strip())
    except ValueError:
        entropy = b""
    if len(entropy) != 32:
        raise InvalidParameters("The entropy file must contain 64 hex digits.")
    return entropy


def read_moment_option(
    _: Context, __: click.Parameter, text: str | None
) -> datetime | None:
    """Return a date, a time of day or an age, such as 3d, as a time."""
    from coterie_pages.formatting import read_moment

    try:
        return None if text is None else read_moment(text, datetime.now(UTC))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}.") from None


SEED: Final = click.IntRange(0, 2**53 - 1)

url_option = click.option(
    "--url",
    envvar="COTERIE_URL",
    default="http://127.0.0.1:8443",
    callback=read_address,
    help="Address of the analyst: https://…; by default port 8443 on this machine. [COTERIE_URL]",
)
key_option = click.option(
    "--key", help="A coordinator's key. [COTERIE_KEY_FILE; COTERIE_KEY]"
)
_HOME: Final[Mapping[str, Any]] = {
    "type": FOLDER,
    "envvar": "COTERIE_HOME",
    "callback": _use_home,
    "help": "Folder of secrets and memory. [COTERIE_HOME; ~/.coterie]",
}
home_option = click.option("--home", **_HOME)

HomeFolder: TypeAlias = Annotated[Path | None, option("", **_HOME)]
Entropy: TypeAlias = Annotated[
    bytes | None,
    option(
        "File of 64 hex digits that replace the operating system's random numbers, to "
        "repeat a run: for tests only.",
        "--entropy-file",
        type=FILE,
        callback=_read_entropy,
    ),
]
Param: TypeAlias = Annotated[
    tuple[str, ...],
    option(
        "A parameter of the protocol, its value as JSON, e.g. n_clusters=3; may be "
        "repeated.",
        "--param",
        metavar="NAME=VALUE",
    ),
]
Rows: TypeAlias = Annotated[
    int | None,
    option(
        "About how many rows all parties have together, to warn of large sizes. It is "
        "not part of the terms.",
        low=1,
    ),
]


def _values_option(text: str, flag: str) -> ParameterSpec:
    return option(
        text,
        flag,
        multiple=True,
        default=(),
        metavar="NAME=VALUE",
        callback=lambda _, __, texts: parse_values(texts),
    )


Choices: TypeAlias = Annotated[
    Mapping[str, Any],
    _values_option(
        "A decision of this party alone, e.g. rebuild_limit=0.05 for dc.", "--choice"
    ),
]
NewMapping: TypeAlias = Annotated[
    bool,
    option("Use this mapping, although the session was run with another one."),
]
Yes: TypeAlias = Annotated[bool, option("Do not ask for confirmation.")]
Force: TypeAlias = Annotated[bool, option("Overwrite existing files.")]
Labels: TypeAlias = Annotated[
    Path,
    option(
        "File for the labels (CSV, Parquet or Excel, by its extension). Ids stay as "
        "they are, even if a spreadsheet would read one as a formula."
    ),
]
Choose: TypeAlias = Annotated[str | None, option_for_caption(CHOOSE)]
Missing: TypeAlias = Annotated[
    Literal["refuse", "drop", "mean", "median"] | None, option_for_caption(PREPARATION)
]
Preparations: TypeAlias = Annotated[
    tuple[Path, ...],
    option(
        "With --schema: how each variable is prepared (JSON): missing values, weights, "
        "logarithms; for a session, once for each column group.",
        "--preparation",
        type=FILE,
    ),
]


@dataclass(frozen=True)
class HomeOptions:
    """The option that names the home: the folder of a party's or coordinator's secrets."""

    home: HomeFolder = None

    @property
    def folder(self) -> Path:
        """Return the home folder: the option's value, or the default home."""
        return self.home or default_home()

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that select the same home in another command."""
        is_usual = self.folder == default_home()
        return [] if is_usual else ["--home", str(self.folder)]

    def open(self, **answers: Any) -> "Home":
        """Open the home, and ask its operator at this terminal.

        answers: answers that the operator gives in advance; see :class:`Home`.
        """
        # Imported here so that --help does not wait for the client.
        from party_sdk.analyst_client.transport import Listeners
        from party_sdk.application.home import Home
        from party_sdk.cli.terminal.asker import TerminalAsker

        return Home(
            path=self.folder,
            listeners=Listeners(on_outage=print_outage, on_silence=print_silence),
            asker=TerminalAsker(),
            **answers,
        )


# Options for reading a table


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a table."""

    id_columns: Annotated[
        tuple[str, ...],
        option(
            "The column of row ids; it is never sent. Repeat it for ids of several columns.",
            "--id-column",
        ),
    ] = ()
    columns: Annotated[
        str | None,
        option(
            "Columns to cluster, comma-separated; by default all but the id columns."
        ),
    ] = None
    dialect: Annotated[
        tuple[str, ...],
        option(
            "The format of a text file, instead of detecting it: delimiter=; decimal=, "
            "encoding=cp1252 skip=1 dates=day-first missing=-9 sheet=…; may be "
            "repeated.",
            "--csv",
            metavar="NAME=VALUE",
        ),
    ] = ()
    schema: Annotated[
        Path | None, option("A data dictionary (Table Schema) of the columns.")
    ] = None
    allow: Annotated[
        tuple[str, ...],
        option(
            "Disable a guard: running-number, large-integers, totals-row, cell-lines "
            "or large-file.",
            metavar="GUARD",
        ),
    ] = ()
    mapping: Annotated[
        Path | None,
        option(
            "A file that translates the table into the dictionary's terms: names, "
            "levels, units. 'table --propose' writes its draft there."
        ),
    ] = None

    def read_options(self, *, is_mapped: bool = True) -> "ReadOptions":
        """Read the dictionary and the mapping, and return the options for reading."""
        from party_sdk.tables import Dialect, ReadOptions
        from party_sdk.tables.mapping import read_mapping
        from party_sdk.tables.variables import read_schema

        columns = self.columns
        return ReadOptions(
            id_column=self.id_columns,
            columns=[n.strip() for n in columns.split(",")] if columns else None,
            dialect=Dialect.parse(self.dialect),
            schema=None if self.schema is None else read_schema(self.schema),
            mapping=read_mapping(self.mapping) if self.mapping and is_mapped else None,
            allow=self.allow,
        )


@dataclass(frozen=True)
class TableOptions(ReadingOptions):
    """Options for a party's own table, and for reading it."""

    data: Annotated[
        Path | None,
        option(
            "This party's rows: a file of text, Excel, Parquet, SPSS, SAS or Stata."
        ),
    ] = None
    long: Annotated[
        str | None,
        option(
            "The file has one line per object and item: the names of these columns.",
            metavar="OBJECT,ITEM[,COUNT]",
        ),
    ] = None
    objects: Annotated[
        Path | None,
        option(
            "With --long: text file with the ids of all objects, one per line, the "
            "same at every site."
        ),
    ] = None

    def build_spec(
        self, outputs: Sequence[Path | None] = (), *, force: bool = False
    ) -> "TableSpec | None":
        """Return the table to open, or None without --data.

        outputs: the files that the command will write. This method checks that they can
            be written, and that none of them is the table.
        """
        if self.data is None:
            return None
        from party_sdk.admission.table_files import TableSpec

        check_outputs(outputs, self.data, force=force)
        return TableSpec(
            path=str(self.data),
            options=self.read_options(),
            long_form=self.long,
            objects_file=self.objects,
            on_open=_print_table_summary,
            name_ids=_id_column_chooser(),
        )

    def require_spec(
        self, outputs: Sequence[Path | None] = (), *, force: bool = False
    ) -> "TableSpec":
        """Return the table to open, or raise a usage error without --data."""
        table = self.build_spec(outputs, force=force)
        if table is None:
            raise click.UsageError("Missing option '--data'.")
        return table


def _id_column_chooser() -> Callable[[Sequence[str], str | None], str | None]:
    """Return a callback that determines the id column, asking the user at most once."""
    answers: list[str | None] = []

    def choose_column(columns: Sequence[str], column: str | None) -> str | None:
        if not answers:
            if column is None and columns and sys.stdin.isatty():
                choices = ", ".join(map(repr, columns))
                say(
                    f"No id column is named (--id-column). Columns: {choices}", err=True
                )
                column = click.prompt(
                    "Which one contains the row ids? none: rows are numbered",
                    default="none",
                    type=click.Choice(["none", *columns]),
                    show_choices=False,
                    err=True,
                )
            answers.append(None if column == "none" else column)
        return answers[0]

    return choose_column


def _print_table_summary(table: "TableSpec", data: "DataSource") -> None:
    from party_sdk.tables import Table

    naming = f"identified by {(table.long_form or '').partition(',')[0]!r}"
    warnings: tuple[str, ...] = ()
    if isinstance(data, Table):
        names = ", ".join(map(repr, data.naming))
        warnings = data.report.warning_sentences
        naming = f"identified by {names}" if names else "without ids"
        if table.options.mapping is not None:
            say("read with a mapping of this table", err=True)
    columns = [*data.columns[:20], *(["…"] if len(data.columns) > 20 else [])]
    say(f"{data.n_rows} rows, {naming}; columns {', '.join(columns)}", err=True)
    for warning in warnings:
        say(f"warning: {warning}", err=True)


# Output files


def check_new_files(paths: Sequence[Path | None], source: Path, *, force: bool) -> None:
    """Raise if one of these files exists or cannot be written, or is the source."""
    check_outputs(paths, source, force=force)
    refuse_overwriting(paths, None, force=force)


# A party's own decisions, and notifications

Guards: TypeAlias = Annotated[
    Mapping[str, Any],
    _values_option(
        "A guard of policy.toml with another value for this command, e.g. least_known=0; "
        "may be repeated.",
        "--guard",
    ),
]


def policy_with_guards(home: Path, guards: Mapping[str, Any]) -> "Policy":
    """Return the policy stored in a home, with the guards of the command line applied."""
    from party_sdk.home.policy_files import parse_guards, read_policy

    return replace(read_policy(home), **parse_guards(guards))


def _read_addresses(
    _: Context, __: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    from party_sdk.party.notifications import check_address

    for value in values:
        try:
            check_address(value)
        except InvalidParameters as error:
            raise click.BadParameter(error.detail) from None
    return values


Notify: TypeAlias = Annotated[
    tuple[str, ...],
    option(
        "Have the analyst notify you when it waits for somebody, and at the end. "
        "ADDRESS is a mail address; may be repeated.",
        metavar="ADDRESS",
        callback=_read_addresses,
    ),
]
Mail: TypeAlias = Annotated[
    str | None, option("Notify this mail address.", metavar="ADDRESS")
]
Remove: TypeAlias = Annotated[
    str | None, option("Stop notifying this id, which the list shows.", metavar="ID")
]
