"""Output of commands: lines for people, JSON for programs, and errors with remedies."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, InvalidParameters
from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.wire.states import SessionState
from party_sdk.cli.terminal.progress import StatusLine

if TYPE_CHECKING:
    from clustering_protocols.wire.answers import Receivers, SessionStatus
    from party_sdk.party.notifications import OwnReceivers
    from party_sdk.party.roster import Roster

_GROUP = "coterie.commands"

_TABLE_LIBRARIES = frozenset({"duckdb", "pyarrow", "python_calamine"})
_PROBLEMS_BY_CODE = {
    3: (  # refused at home
        Problem.RISK_NOT_ACCEPTED,
        Problem.GUARD_REFUSED,
        Problem.KEY_NOT_AUTHENTIC,
        Problem.CERTIFICATE_REFUSED,
        Problem.ENVELOPE_REFUSED,
        Problem.EQUIVOCATION,
        Problem.AGREEMENT_MISMATCH,
        Problem.VERSION_MISMATCH,
        Problem.AUDIT_BROKEN,
    ),
    4: (  # the session ended
        Problem.SESSION_OVER,
        Problem.ROWS_NOT_ALIGNED,
        Problem.COLUMNS_NOT_ALIGNED,
        Problem.PROTOCOL_FAILED,
        Problem.DEADLINE_PASSED,
        Problem.CANCELLED,
        Problem.PARTY_STOPPED,
    ),
    5: (  # the input cannot be used
        Problem.INVALID_DATA,
        Problem.INVALID_PARAMETERS,
        Problem.INVITATION_UNREADABLE,
    ),
    6: (Problem.UNAVAILABLE,),
}


class Output(NamedTuple):
    """The output of a command: a document for --json, and lines otherwise.

    document: a JSON value, a pydantic model, or a function that returns one of these.
    code: the exit code, or a function that is called for it after the output.
    """

    document: Any
    lines: Iterable[str] = ()
    code: int | Callable[[], int] = 0


def print_output(output: Output, *, as_json: bool) -> None:
    """Print the output of a command, and exit with its code."""
    if as_json:
        document = output.document() if callable(output.document) else output.document
        if hasattr(document, "model_dump_json"):  # pydantic is not imported here
            document = document.model_dump_json()
        say(document if isinstance(document, str) else json.dumps(document))
    else:
        for line in output.lines:
            say(line)
    code = output.code() if callable(output.code) else output.code
    if code:
        click.get_current_context().exit(code)


_CONTROL = re.compile(f"[{CONTROLS}]")
_line = StatusLine()


def say(text: str, *, err: bool = False) -> None:
    """Print one line, in which control characters are escaped.

    Titles and details come from other people, who could otherwise use colours, cursor
    movements or the direction of text to hide the sentence of a risk.
    """
    _line.clear()
    click.echo(_escape_controls(text), err=err)


def _escape_controls(text: str) -> str:
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def exit_code(problem: Problem) -> int:
    """Return the exit code with which a command reports a problem."""
    codes = (code for code, group in _PROBLEMS_BY_CODE.items() if problem in group)
    return next(codes, 7)


class RootGroup(click.Group):
    """The group of all commands, loaded from entry points; it explains their errors.

    Listing the commands imports their modules, so these only declare commands, and
    import everything else when a command runs. No command waits for the imports of
    another, and a party needs no package of the service.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all installed commands, sorted."""
        del ctx
        return sorted(entry_points(group=_GROUP).names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if no command has this name.

        If the extra that the command needs is not installed, the returned command only
        reports this.
        """
        del ctx
        for entry_point in entry_points(group=_GROUP, name=cmd_name):
            try:
                command = entry_point.load()
            except InvalidParameters as refusal:
                return _build_refusing_command(cmd_name, refusal)
            return command if isinstance(command, click.Command) else None
        return None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and report errors as text (or JSON) and an exit code."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            command = "" if error.ctx is None else error.ctx.command_path
            _print_problem_as_json(
                type="about:blank",
                title="Wrong usage",
                detail=error.format_message(),
                remedy=f"See {command} --help." if command else "",
                exit_code=error.exit_code,
            )
            raise
        except (CoterieError, ModuleNotFoundError) as error:
            failure: CoterieError
            if isinstance(error, CoterieError):
                failure = error
            else:
                library = (error.name or "").partition(".")[0]
                if library not in _TABLE_LIBRARIES:
                    raise
                failure = InvalidParameters(  # not installed with the analyst alone
                    f"This command reads tables with {library}. Install it: pip "
                    "install coterie."
                )
            problem, code = failure.problem, exit_code(failure.problem)
            _print_problem_as_json(
                type=problem.urn,
                title=problem.title,
                detail=failure.detail,
                remedy=failure.remedy,
                exit_code=code,
            )
            say(f"{problem.title}.", err=True)
            for line in failure.cells or (failure.detail,):
                say(f"  {line}", err=True)
            say(f"  What to do: {failure.remedy}", err=True)
            ctx.exit(code)


def _print_problem_as_json(**problem: object) -> None:
    """Print a problem as JSON if --json was given, even if parsing arguments failed."""
    if "--json" in sys.argv:
        say(json.dumps(problem))


def _build_refusing_command(name: str, refusal: InvalidParameters) -> click.Command:
    """Return a hidden command that always raises the error about its missing extra."""

    def refuse(**_: object) -> None:
        raise refusal

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
        hidden=True,
    )


def show_progress(status: SessionStatus) -> None:
    """Print a session's state to standard error; on a terminal, update a single line."""
    _line.show(_escape_controls(progress_line(status)), stays=status.is_over)


def show_notes(notes: Mapping[str, Any]) -> None:
    """Print a protocol's notes for the operator to standard error."""
    for name, value in notes.items():
        text = f"{value:.4g}" if isinstance(value, float) else value
        say(f"  {name}: {text}", err=True)


def roster_lines(roster: Roster) -> Iterator[str]:
    """Yield a line for each member, and the safety number that they compare."""
    for seat in roster.seats:
        name = seat.name or "gives no name"
        remark = "" if seat.known else " (you do not know this key)"
        sizes = f"{seat.n_rows} rows, {seat.n_columns} columns"
        yield f"{seat.slot}: {name}{remark}, {sizes}; {seat.fingerprint}"
    yield f"safety number {roster.safety_number}"


def roster_document(roster: Roster) -> dict[str, Any]:
    """Return the members and the safety number as a JSON value."""
    members = [asdict(seat) for seat in roster.seats]
    return {"members": members, "safety_number": roster.safety_number}


def report_lines(values: Mapping[str, Any], separator: str = ": ") -> Iterator[str]:
    """Yield the values that a protocol reports with a result, one per line."""
    for name, value in values.items():
        if name != "n_coinciding":
            yield f"{name}{separator}{value}"
        elif value:
            yield (
                f"Clusters coincide: {value} equal a cluster with a lower number, "
                "which has their rows. Ask for fewer clusters or less fuzzy ones."
            )


def progress_line(status: SessionStatus) -> str:
    """Return the state of a session as one line."""
    if status.is_over:
        if status.reason is None:
            return str(status.state)
        problem = Problem.from_slug(status.reason)
        why = f"{problem.title}. {status.detail or ''} {problem.remedy}"
        return f"{status.state}: {why}"
    short = ". The analyst has no room left: its administrator has to free some"
    return f"{_describe_progress(status)}{short * status.short_of_room}"


def _describe_progress(status: SessionStatus) -> str:
    from clustering_protocols.wire.answers import describe_pace

    awaited = ", ".join(status.awaited_slots) or "the analyst"
    until = f"{status.deadline:%Y-%m-%d %H:%M} UTC"
    if status.state == SessionState.RECRUITING:
        return f"recruiting: waiting until {until} for {awaited} to join"
    if status.state == SessionState.CHOOSING:
        numbers = ", ".join(str(run.n_clusters) for run in status.runs)
        return (
            f"choosing: all runs ({numbers} clusters) are done; waiting until {until} "
            "for the coordinator to choose one"
        )
    if status.round == 0:
        return "all have joined: the analyst prepares the first round"
    stage = (
        f"stage {status.stage_index + 1}/{max(status.n_stages, 1)} {status.stage or ''}"
    )
    attempt = f", attempt {status.attempt}" if status.attempt > 1 else ""
    pace = describe_pace(status)
    position = f"{stage.strip()}, round {status.round}{attempt}{_updates_text(status)}"
    position += f", {pace}" * bool(pace)
    return f"{position}: waiting until {until} for {awaited}"


def _updates_text(status: SessionStatus) -> str:
    from clustering_protocols.wire.answers import updates_done

    n_done, n_max = updates_done(status)
    if not n_done:
        return ""
    moved = status.progress.get("moved") or []
    movement = f", the last moved by {moved[-1]:.2g}" if moved else ""
    return f", {n_done} of at most {n_max} updates{movement}"


def audit_line(entry: Mapping[str, Any]) -> str:
    """Return an entry of an audit or a ledger as one line."""
    round_text = (
        f"round {entry['round']}.{entry['attempt']}" if entry.get("round") else ""
    )
    words = (entry.get("slot"), round_text, entry.get("reason"), entry.get("digest"))
    text = "  ".join(str(word) for word in words if word)
    return f"{entry['number']}  {entry['at'][:19]}  {entry['event']}  {text}".rstrip()


def audit_lines(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the entries of a log that was checked, and print that its chain is intact."""
    yield from map(audit_line, entries)
    say(f"The chain of {len(entries)} lines is intact.", err=True)


def align_columns(
    rows: Sequence[Sequence[str]], *, are_numbers: bool = False
) -> Iterator[str]:
    """Yield rows of cells as lines in which the columns are aligned.

    are_numbers: whether to right-align all columns but the first.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *other_cells = zip(row, widths, strict=True)
        align = str.rjust if are_numbers else str.ljust
        cells = [
            str.ljust(*first),
            *(align(cell, width) for cell, width in other_cells),
        ]
        yield "  ".join(cells).rstrip()


def print_outage(outage: str) -> None:
    """Print why the analyst is unreachable, or that it responds again.

    outage: the reason; an empty string if the analyst responds again.
    """
    if outage:
        say(f"The analyst {outage}; trying again since {_current_time()}.", err=True)
    else:
        say(f"The analyst answers again, at {_current_time()}.", err=True)


def print_silence(host: str) -> None:
    """Print that the analyst has not answered yet."""
    say(
        f"No answer from the analyst at {host} yet; still waiting at {_current_time()}.",
        err=True,
    )


def _current_time() -> str:
    return time.strftime("%H:%M:%S")


def change_receivers(
    receivers: OwnReceivers, mail: str | None, removed_id: str | None
) -> Output:
    """Remove or add an address for notifications, and return all addresses."""
    if removed_id:
        receivers.remove(removed_id)
    if mail:
        receivers.add(mail)
    current = receivers.list()
    return Output(current, receiver_lines(current))


def receiver_lines(current: Receivers) -> Iterator[str]:
    """Yield the addresses for notifications, and the deliveries to each."""
    from clustering_protocols.wire.answers import SENTENCES

    for receiver in current.receivers:
        text = f"{receiver.sent} sent"
        if receiver.retrying:
            text += f", {receiver.retrying} retried"
        if receiver.given_up:
            text += f", {receiver.given_up} given up"
        if receiver.failure is not None:
            text += f". {SENTENCES.get(receiver.failure, receiver.failure)}"
        yield f"{receiver.id}  {receiver.address}  {text}"
