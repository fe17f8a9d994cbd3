"""Pages of the desk at home: what waits for a person, and what that person decides."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.values import Value
from coterie_pages.models.fields import FormField
from coterie_pages.models.parts import Risk
from coterie_pages.models.reports import RunReport
from coterie_pages.models.screens import Screen
from coterie_pages.models.sheet import TermsSheet


class PartyRow(Value):
    """A party of this home in a list.

    group: whether it waits for its person, runs, or has ended.
    said: what it waits for, or why it ended, in a sentence.
    since: since when it has been so; None where only the command line knows it.
    """

    session: str
    slot: str
    title: str = ""
    protocol: str = ""
    state: str
    group: Literal["asks", "runs", "ended"]
    said: str = ""
    since: AwareDatetime | None = None


class Parties(Screen):
    """The parties of a home, those that wait for a person first.

    process: which process runs orders; None if none does.
    here: whether it is the desk's own.
    trouble, remedy: why no process does, and what to do; empty where one does.
    """

    template = "desk/parties.html.j2"
    rows: tuple[PartyRow, ...]
    process: int | None = None
    here: bool = False
    trouble: str = ""
    remedy: str = ""
    now: AwareDatetime


class OfferedTerms(TermsSheet, Screen):
    """The terms of an invitation, with a tick for each risk that is not accepted yet.

    accepted: codes that the policy of this home accepts.
    joined: whether this party has accepted these terms: nothing is asked any more.
    missed: codes without a tick in the form that was sent.
    """

    template = "desk/terms.html.j2"
    accepted: tuple[str, ...] = ()
    joined: bool = False
    missed: tuple[str, ...] = ()


class TableFile(Value):
    """A file that is offered as a table; size in bytes."""

    name: str
    path: str
    size: int = Field(ge=0)


class ColumnChoice(Value):
    """A column of a table, and what becomes of it.

    kind: what it holds; empty where it was not read.
    low, high: its range, in words; empty where it has none.
    role: ``id`` names the rows and never leaves, ``in`` is clustered, ``out`` is not.
    """

    name: str
    kind: str = ""
    missing: int = Field(default=0, ge=0)
    low: str = ""
    high: str = ""
    role: Literal["id", "in", "out"]


class OwnTick(Value):
    """Something that a party allows by itself; ``name`` as messages name it."""

    name: str
    sentence: str
    given: bool = False


class OwnChoices(Value):
    """What a party decides alone: what it allows, and which share its sums may tell."""

    ticks: tuple[OwnTick, ...]
    share: FormField


class TableChoice(Screen):
    """A table is chosen, and how it is read is shown.

    Attributes
    ----------
    title, session, slot : str
        The session, and the place in it.
    folder : str
        Whose files are offered.
    more_files : int
        How many more there are.
    path, csv : str
        The table that was chosen, and how it is written; empty where none was.
    dialect : dict
        How the file is written, as it was found out.
    described : bool
        Whether the terms' dictionary says which columns are clustered.
    checked : bool
        Whether the table was held against the terms.
    problems, warnings : tuple of str
        What hinders it, with lines, and what may be wrong.
    notify : str
        Addresses that the analyst is to tell, as they were typed.
    choices : OwnChoices
        What the party decides alone.
    """

    template = "desk/table.html.j2"
    title: str
    session: str
    slot: str
    folder: str
    files: tuple[TableFile, ...] = ()
    more_files: int = Field(default=0, ge=0)
    path: str = ""
    csv: str = ""
    n_rows: int = Field(default=0, ge=0)
    dialect: dict[str, str] = Field(default={})
    columns: tuple[ColumnChoice, ...] = ()
    described: bool = False
    checked: bool = False
    problems: tuple[str, ...] = ()
    more_problems: int = Field(default=0, ge=0)
    warnings: tuple[str, ...] = ()
    confirm: bool = True
    notify: str = ""
    choices: OwnChoices


class LeavingArray(Value):
    """An array that would leave; the range is the party's own."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: float | None = None
    high: float | None = None
    n_bytes: int = Field(ge=0)


class LeavingEnvelope(Value):
    """An envelope that would leave, and for whom it is."""

    receiver: str
    kind: str
    n_bytes: int = Field(ge=0)


class Leaving(Value):
    """Everything in a contribution that waits for a yes.

    values: what it says in words and numbers, by name.
    notes: what the protocol wants its operator to read.
    """

    stage: str
    round: int = Field(ge=0)
    attempt: int = Field(ge=0)
    kind: str
    values: dict[str, str] = Field(default={})
    arrays: tuple[LeavingArray, ...] = ()
    envelopes: tuple[LeavingEnvelope, ...] = ()
    n_bytes: int = Field(ge=0)
    notes: dict[str, str] = Field(default={})


class RehearsedRounds(Value):
    """Rounds of one kind that follow each other; ``leaving`` is what the first sends."""

    first: int = Field(ge=0)
    last: int = Field(ge=0)
    n: int = Field(ge=1)
    leaving: Leaving
    n_bytes: int = Field(ge=0)


class Rehearsal(Screen):
    """What would leave of a table, of a session that was played at home.

    Attributes
    ----------
    path, csv, ids, columns, notify, choices
        For the form that places the order.
    n_bytes, seconds
        All that would leave, and how long the own party was at work.
    notes : dict
        What protocols tell their operator: self-checks.
    asks : tuple of str
        What a person would have to agree to by name.
    """

    template = "desk/rehearsal.html.j2"
    title: str
    session: str
    slot: str
    path: str
    csv: str = ""
    ids: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    notify: str = ""
    choices: OwnChoices
    n_rows: int = Field(ge=0)
    rounds: tuple[RehearsedRounds, ...] = ()
    n_rounds: int = Field(ge=0)
    n_bytes: int = Field(ge=0)
    seconds: float = Field(ge=0)
    notes: dict[str, str] = Field(default={})
    asks: tuple[str, ...] = ()


class AskedOf(Value):
    """A member, beside the safety number."""

    slot: str
    name: str = ""
    known: bool = False
    fingerprint: str
    n_rows: int = Field(ge=0)
    n_columns: int = Field(ge=0)
    own: bool = False


class Asked(Value):
    """What a person has to decide.

    kind: as the supervisor names it; ``risks``, ``safety-number``, ``agreeing``,
        ``contribution``, ``choice`` or ``table``.
    """

    id: str
    kind: str
    sentence: str
    risks: tuple[Risk, ...] = ()
    leaving: Leaving | None = None
    asked_at: AwareDatetime


class AtWork(Screen):
    """Where an order stands, and what it asks.

    Attributes
    ----------
    state : str
        Of the order.
    over : bool
        Whether nothing more is done unless it is placed again.
    stage, stage_number, n_stages, round, updates, n_updates
        Where the session is; they count from 1.
    awaited, awaited_since
        For whom the session waits.
    moved : float, optional
        By how much the last update moved the result.
    outage_since : datetime, optional
        Since when the analyst cannot be reached.
    headline, detail, remedy : str
        What went wrong; empty where nothing did.
    limit : str
        The party's own choice that this names; empty for none.
    members, safety_number
        Who takes part, once all have joined.
    table : str
        The name of the table's file.
    confirm : bool
        Whether each contribution waits for a yes.
    process : int, optional
        Which process runs orders.
    for_good : bool
        Whether the party has left after it had joined: it cannot be placed again.
    """

    template = "desk/at-work.html.j2"
    session: str
    slot: str
    title: str
    protocol: str = ""
    state: str
    over: bool
    stage: str = ""
    stage_number: int | None = None
    n_stages: int | None = None
    round: int | None = None
    updates: int | None = None
    n_updates: int | None = None
    awaited: tuple[str, ...] = ()
    awaited_since: AwareDatetime | None = None
    moved: float | None = None
    outage_since: AwareDatetime | None = None
    headline: str = ""
    detail: str = ""
    remedy: str = ""
    limit: str = ""
    restarts: int = Field(default=0, ge=0)
    placed_at: AwareDatetime
    started_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    now: AwareDatetime
    asked: Asked | None = None
    members: tuple[AskedOf, ...] = ()
    safety_number: str = ""
    table: str = ""
    for_good: bool = False
    confirm: bool = False
    process: int | None = None
    missed: tuple[str, ...] = ()


class Outcome(RunReport, Screen):
    """The result of a run, with files to keep.

    labels: whether a file of labels is there.
    undrawn: why own rows are not drawn; empty where they are.
    """

    template = "desk/outcome.html.j2"
    labels: bool = False
    undrawn: str = ""
