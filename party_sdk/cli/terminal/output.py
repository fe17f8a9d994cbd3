"""What the commands print: lines for people, JSON for programs, errors that help."""

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

_OF_PARTIES = frozenset({"duckdb", "pyarrow", "python_calamine"})
_REFUSED_AT_HOME = frozenset(
    {
        Problem.RISK_NOT_ACCEPTED,
        Problem.GUARD_REFUSED,
        Problem.KEY_NOT_AUTHENTIC,
        Problem.CERTIFICATE_REFUSED,
        Problem.ENVELOPE_REFUSED,
        Problem.EQUIVOCATION,
        Problem.AGREEMENT_MISMATCH,
        Problem.VERSION_MISMATCH,
        Problem.AUDIT_BROKEN,
    }
)
_ENDED = frozenset(
    {
        Problem.SESSION_OVER,
        Problem.ROWS_NOT_ALIGNED,
        Problem.COLUMNS_NOT_ALIGNED,
        Problem.PROTOCOL_FAILED,
        Problem.DEADLINE_PASSED,
        Problem.CANCELLED,
        Problem.PARTY_STOPPED,
    }
)
_INPUT = frozenset(
    {
        Problem.INVALID_DATA,
        Problem.INVALID_PARAMETERS,
        Problem.INVITATION_UNREADABLE,
    }
)


class Output(NamedTuple):
    """What a command prints: a document with --json, lines without.

    document: a JSON value, a model, or a function without arguments that returns one.
    code: with which the command ends, or a function that returns it once all is printed.
    """

    document: Any
    lines: Iterable[str] = ()
    code: int | Callable[[], int] = 0


def print_output(output: Output, *, as_json: bool) -> None:
    """Print what a command returned, and end with its code."""
    if as_json:
        found = output.document() if callable(output.document) else output.document
        if hasattr(found, "model_dump_json"):  # pydantic is imported by models alone
            found = found.model_dump_json()
        say(found if isinstance(found, str) else json.dumps(found))
    else:
        for line in output.lines:
            say(line)
    code = output.code() if callable(output.code) else output.code
    if code:
        click.get_current_context().exit(code)


_CONTROL = re.compile(f"[{CONTROLS}]")
_line = StatusLine()


def say(text: str, *, err: bool = False) -> None:
    """Print one line, anyone who wrote what is in it.

    What a terminal would obey (colours, the cursor, the direction of text) is shown as
    an escape: titles and details come from others, and could hide a risk's sentence.
    """
    _line.clear()
    click.echo(_escape_controls(text), err=err)


def _escape_controls(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def exit_code(problem: Problem) -> int:
    """Return the command's exit code for a problem."""
    if problem in _REFUSED_AT_HOME:
        return 3
    if problem in _ENDED:
        return 4
    if problem in _INPUT:
        return 5
    return 6 if problem is Problem.UNAVAILABLE else 7


class ExplainedGroup(click.Group):
    """The group of all commands: found by entry points, explained when they fail.

    A list of commands takes the modules of all of them. So these say what a command is
    called and takes, and import what it runs with where it runs: none waits for the
    imports of another, and a party needs nothing that only the service needs.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all installed commands."""
        del ctx
        return sorted(entry_points(group=_GROUP).names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; without its extra one that says so; None if there is none."""
        del ctx
        for found in entry_points(group=_GROUP, name=cmd_name):
            try:
                command = found.load()
            except InvalidParameters as missing:
                return _build_refusing_command(cmd_name, missing)
            return command if isinstance(command, click.Command) else None
        return None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn a problem into text (or JSON) and an exit code."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if "--json" in sys.argv:
                say(json.dumps(_wrong_usage(error)))
            raise
        except (CoterieError, ModuleNotFoundError) as raised:
            known = _explain_missing_library(raised)
            code = exit_code(known.problem)
            if "--json" in sys.argv:
                say(json.dumps(_as_document(known, code)))
            say(f"{known.problem.title}.", err=True)
            for line in known.cells or (known.detail,):
                say(f"  {line}", err=True)
            say(f"  What to do: {known.remedy}", err=True)
            ctx.exit(code)


def _explain_missing_library(error: CoterieError | ModuleNotFoundError) -> CoterieError:
    """Return the error of a command; an analyst is installed without what reads tables."""
    if isinstance(error, CoterieError):
        return error
    library = (error.name or "").partition(".")[0]
    if library not in _OF_PARTIES:
        raise error
    return InvalidParameters(
        f"This command reads tables by {library}. Install it: pip install coterie."
    )


def _build_refusing_command(name: str, missing: InvalidParameters) -> click.Command:
    """Return a command that is not listed, and says whatever is asked what it lacks."""

    def refuse(**_: object) -> None:
        raise missing

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
        hidden=True,
    )


def _wrong_usage(error: click.UsageError) -> Mapping[str, Any]:
    context = error.ctx
    return {
        "type": "about:blank",
        "title": "Wrong usage",
        "detail": error.format_message(),
        "remedy": "" if context is None else f"See {context.command_path} --help.",
        "exit_code": error.exit_code,
    }


def _as_document(error: CoterieError, code: int) -> Mapping[str, Any]:
    return {
        "type": error.problem.urn,
        "title": error.problem.title,
        "detail": error.detail,
        "remedy": error.remedy,
        "exit_code": code,
    }


def show_progress(status: SessionStatus) -> None:
    """Tell where a session stands, on standard error: in a terminal in one place."""
    told = _escape_controls(progress_line(status))
    _line.show(told, part=_part(status), stays=status.is_over)


def _part(status: SessionStatus) -> float | None:
    """Return how much of a session's stages and updates is done."""
    from clustering_protocols.wire.answers import updates_done

    if status.round == 0 or not status.n_stages:
        return None
    done, most = updates_done(status)
    return (status.stage_index + (done / most if most else 0.0)) / status.n_stages


def show_notes(notes: Mapping[str, Any]) -> None:
    """Print what a protocol wants the operator to read, on standard error."""
    for name, value in notes.items():
        shown = f"{value:.4g}" if isinstance(value, float) else value
        say(f"  {name}: {shown}", err=True)


def roster_lines(roster: Roster) -> Iterator[str]:
    """Yield who sits where, and the number that the members compare."""
    for seat in roster.seats:
        name = seat.name or "gives no name"
        known = "" if seat.known else " (you do not know this key)"
        sizes = f"{seat.n_rows} rows, {seat.n_columns} columns"
        yield f"{seat.slot}: {name}{known}, {sizes}; {seat.fingerprint}"
    yield f"safety number {roster.safety_number}"


def roster_document(roster: Roster) -> dict[str, Any]:
    """Return the same as a JSON value."""
    members = [asdict(seat) for seat in roster.seats]
    return {"members": members, "safety_number": roster.safety_number}


def report_lines(values: Mapping[str, Any], between: str = ": ") -> Iterator[str]:
    """Yield what a protocol tells of a result, a line each."""
    for name, value in values.items():
        if name != "n_coinciding":
            yield f"{name}{between}{value}"
        elif value:
            yield (
                f"Clusters coincide: {value} of them with one of a lower number, which "
                "has their rows. Ask for fewer clusters or less fuzzy ones."
            )


def progress_line(status: SessionStatus) -> str:
    """Return where a session stands in one line."""
    if status.is_over:
        if status.reason is None:
            return str(status.state)
        problem = Problem.of_slug(status.reason)
        why = f"{problem.title}. {status.detail or ''} {problem.remedy}"
        return f"{status.state}: {why}"
    short = ". The analyst has no room left: its administrator has to make some"
    return f"{_describe_progress(status)}{short * status.short_of_room}"


def _describe_progress(status: SessionStatus) -> str:
    """Return for whom a session waits that continues."""
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
    where = (
        f"stage {status.stage_index + 1}/{max(status.n_stages, 1)} {status.stage or ''}"
    )
    again = f", attempt {status.attempt}" if status.attempt > 1 else ""
    pace = describe_pace(status)
    place = f"{where.strip()}, round {status.round}{again}{_updates(status)}"
    place += f", {pace}" * bool(pace)
    return f"{place}: waiting until {until} for {awaited}"


def _updates(status: SessionStatus) -> str:
    """Return how far a protocol of many updates has come, if it says so."""
    from clustering_protocols.wire.answers import updates_done

    done, most = updates_done(status)
    if not done:
        return ""
    moved = status.progress.get("moved") or []
    last = f", the last moved by {moved[-1]:.2g}" if moved else ""
    return f", {done} of at most {most} updates{last}"


def audit_line(entry: Mapping[str, Any]) -> str:
    """Return an entry of an audit or a ledger in one line."""
    place = f"round {entry['round']}.{entry['attempt']}" if entry.get("round") else ""
    words = (entry.get("slot"), place, entry.get("reason"), entry.get("digest"))
    said = "  ".join(str(word) for word in words if word)
    return f"{entry['number']}  {entry['at'][:19]}  {entry['event']}  {said}".rstrip()


def audit_lines(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the entries of a log that was checked; say so."""
    yield from map(audit_line, entries)
    say(f"The chain of {len(entries)} lines holds.", err=True)


def align_columns(
    rows: Sequence[Sequence[str]], *, are_numbers: bool = False
) -> Iterator[str]:
    """Yield rows of cells as lines in which columns stand under each other.

    are_numbers: whether all columns but the first are aligned on the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *rest = zip(row, widths, strict=True)
        align = str.rjust if are_numbers else str.ljust
        cells = [str.ljust(*first), *(align(cell, width) for cell, width in rest)]
        yield "  ".join(cells).rstrip()


def show_outage(outage: str) -> None:
    """Say what is wrong with the analyst, or that it answers again."""
    if outage:
        say(f"The analyst {outage}; trying again since {_now()}.", err=True)
    else:
        say(f"The analyst answers again, at {_now()}.", err=True)


def show_silence(host: str) -> None:
    """Say that no answer has come yet."""
    say(
        f"No answer from the analyst at {host} yet; still waiting at {_now()}.",
        err=True,
    )


def _now() -> str:
    return time.strftime("%H:%M:%S")


def change_receivers(
    receivers: OwnReceivers, mail: str | None, removed: str | None
) -> Output:
    """Add or remove an address; return who is notified, and which notices failed."""
    if removed:
        receivers.remove(removed)
    if mail:
        receivers.add(mail)
    found = receivers.list()
    return Output(found, receiver_lines(found))


def receiver_lines(found: Receivers) -> Iterator[str]:
    """Yield who is notified, and which notices failed."""
    from clustering_protocols.wire.answers import SENTENCES

    for each in found.receivers:
        told = f"{each.sent} sent"
        if each.retrying:
            told += f", {each.retrying} tried again"
        if each.given_up:
            told += f", {each.given_up} given up"
        if each.failure is not None:
            told += f". {SENTENCES.get(each.failure, each.failure)}"
        yield f"{each.id}  {each.address}  {told}"
