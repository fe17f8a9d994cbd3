"""Pages of the desk at home: what waits for a person, and what that person decides."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.engine.inspection import Rehearsal
from clustering_protocols.terms.agreements import Seat
from coterie_pages.models.fields import FormField, KeyLine
from coterie_pages.models.parts import Risk
from coterie_pages.models.reports import NewRowsSummary, RunReport
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


class KnownInstitution(Value):
    """An institution whose card is trusted here, and the fingerprint of its key."""

    name: str
    fingerprint: str


class PartyList(Screen):
    """The parties of a home, those that wait for a person first.

    institution: the name of this home's institution; empty where it has none yet.
    fingerprint: of its public key; empty where there is none yet.
    known: institutions whose cards are trusted here.
    trouble, remedy: why no orders run, and what to do; empty where they do.
    """

    template = "desk/parties.html.j2"
    rows: tuple[PartyRow, ...]
    institution: str = ""
    fingerprint: str = ""
    known: tuple[KnownInstitution, ...] = ()
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
    links: whether match keys are made of it.
    """

    name: str
    kind: str = ""
    missing: int = Field(default=0, ge=0)
    low: str = ""
    high: str = ""
    role: Literal["id", "in", "out"]
    links: bool = False


class OwnTick(Value):
    """Something that a party allows by itself; ``name`` as messages name it."""

    name: str
    sentence: str
    given: bool = False


class OwnChoices(Value):
    """What a party decides alone.

    ticks: what it allows.
    share: which share of its rows its sums may tell.
    quota: how many ids others may bring for each of its rows; None where none are.
    needed: whether the policy admits too few for the match keys of the terms.
    """

    ticks: tuple[OwnTick, ...]
    share: FormField
    quota: FormField | None = None
    needed: bool = False


class TableReading(Screen):
    """A table is chosen, and how it is read is shown.

    place: the address of the page below that of the party.
    title, session, slot: the session, and the place in it.
    folder: whose files are offered.
    more_files: how many more there are.
    path, csv: the table that was chosen, and how it is written; empty where none was.
    dialect: how the file is written, as it was found out.
    sheets, sheet: of a file with sheets, and the one that was read.
    skip: how many lines or rows stand above the names of columns, where somebody said it.
    not_read: rows of the file that are left out, or cannot be read.
    is_mapped: whether a mapping mends the table.
    mends: whether there is a dictionary, by which a mapping can be drafted.
    described: whether it is settled which columns are clustered.
    checked: whether the table was held against the terms.
    problems, warnings: what hinders it, with lines, and what may be wrong.
    match_keys: how its rows look by the keys that link them.
    """

    place: ClassVar[str]
    title: str
    session: str
    slot: str
    folder: str
    files: tuple[TableFile, ...] = ()
    more_files: int = Field(default=0, ge=0)
    path: str = ""
    csv: str = ""
    n_rows: int = Field(default=0, ge=0)
    not_read: int = Field(default=0, ge=0)
    sheets: tuple[str, ...] = ()
    sheet: str = ""
    skip: str = ""
    is_mapped: bool = False
    mends: bool = False
    dialect: dict[str, str] = Field(default={})
    columns: tuple[ColumnChoice, ...] = ()
    described: bool = False
    checked: bool = False
    problems: tuple[str, ...] = Field(default=(), repr=False)
    warnings: tuple[str, ...] = ()
    match_keys: tuple[KeyLine, ...] = ()


class TableChoice(TableReading):
    """The table of a run is chosen.

    notify: addresses that the analyst is to tell, as they were typed.
    choices: what the party decides alone.
    """

    template = "desk/table.html.j2"
    place = "table"
    confirm: bool = False
    notify: str = ""
    choices: OwnChoices


class NewRowsChoice(TableReading):
    """A table of new rows is chosen.

    doubt: why they look like other units than those of the session; empty where they
        do not.
    """

    template = "desk/new-rows.html.j2"
    place = "new-rows"
    doubt: str = ""


class LabelledRows(Screen):
    """New rows have their labels, and may be kept as a file.

    path, csv, ids, agreed: for the form that makes the file.
    summary: what is said of them as a whole.
    """

    template = "desk/labelled-rows.html.j2"
    title: str
    session: str
    slot: str
    path: str
    csv: str = ""
    ids: tuple[str, ...] = ()
    agreed: bool = False
    summary: NewRowsSummary


class CardPage(Screen):
    """The card of an institution, before its key is trusted.

    name, fingerprint: what the card says.
    card: its text, for the form that trusts it.
    """

    template = "desk/card.html.j2"
    name: str
    fingerprint: str
    card: str


class RehearsalPage(Screen):
    """What would be sent of a table, of a session that was played at home.

    path, csv, ids, columns, mapping, notify, choices: for the form that places the order.
    """

    template = "desk/rehearsal.html.j2"
    title: str
    session: str
    slot: str
    path: str
    csv: str = ""
    ids: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    mapping: str = Field(default="", repr=False)
    notify: str = ""
    choices: OwnChoices
    played: Rehearsal


class OrderPage(Screen):
    """Where an order stands, and what it asks.

    status, question, table: of :mod:`party_sdk.supervisor`: an ``OrderStatus``, a
        ``PendingQuestion`` or None, and the name of the table's file.
    risks: what the question asks to accept.
    missed: risks without a tick in the form that was sent.
    consents: of :mod:`party_sdk.home.consents`.
    limit: the party's own choice that the trouble names; empty for none.
    members, safety_number: who takes part, once all have joined.
    asks: which kinds of contribution wait for a yes: ``everything``, ``readable`` for
        those that somebody can read, or nothing where it is empty.
    for_good: whether the party has left after it had joined: it cannot be placed again.
    compares_runs: whether one of several numbers of clusters is to be chosen.
    """

    template = "desk/order.html.j2"
    title: str
    status: Any
    question: Any = None
    consents: Any = None
    risks: tuple[Risk, ...] = ()
    missed: tuple[str, ...] = ()
    limit: str = ""
    now: AwareDatetime
    members: tuple[Seat, ...] = ()
    safety_number: str = ""
    table: str = ""
    for_good: bool = False
    compares_runs: bool = False
    asks: str = ""


class RunOutcome(RunReport, Screen):
    """The result of a run, with files to keep.

    labels: whether a file of labels is there.
    undrawn: why own rows are not drawn; empty where they are.
    note: what a spreadsheet may do to ids in that file; empty where it does nothing.
    labels_new_rows: whether the result labels new rows.
    unlinked: whether it can be said which rows match keys linked to nobody.
    formats: of the table with clusters, as it can be downloaded.
    """

    template = "desk/outcome.html.j2"
    formats: tuple[str, ...] = ()
    labels: bool = False
    note: str = ""
    undrawn: str = ""
    labels_new_rows: bool = False
    unlinked: bool = False
