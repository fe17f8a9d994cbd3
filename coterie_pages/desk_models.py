"""Pages of the desk at home: what waits for a person, and what that person decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.engine.inspection import Rehearsal
from clustering_protocols.terms.agreements import Seat
from clustering_protocols.wire.answers import SessionLine, SessionStatus
from coterie_pages.models import (
    FormField,
    KeysChoice,
    NewRowsSummary,
    Option,
    RunReport,
    Screen,
    SessionReport,
    SlotEntry,
    TermsSheet,
    Timeline,
)


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


class PartyList(Screen):
    """The parties of a home, those that wait for a person first.

    institution: the name of this home's institution; empty where it has none yet.
    fingerprint: of its public key; empty where there is none yet.
    known: fingerprints of the institutions whose cards are trusted here, by name.
    trouble, remedy: why no orders run, and what to do; empty where they do.
    """

    template = "desk/parties.html.j2"
    rows: tuple[PartyRow, ...]
    institution: str = ""
    fingerprint: str = ""
    known: dict[str, str] = Field(default={})
    trouble: str = ""
    remedy: str = ""
    now: AwareDatetime


class OfferedTerms(TermsSheet, Screen):
    """The terms of an invitation, to be accepted.

    joined: whether this party has accepted these terms: nothing is asked any more.
    """

    template = "desk/terms.html.j2"
    joined: bool = False


class FieldGroup(Value):
    """Fields that are folded under a title, and groups within it.

    note: what is said of them together.
    """

    title: str
    fields: tuple[FormField, ...] = ()
    groups: tuple[FieldGroup, ...] = ()
    note: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether something in it is wrong, or not as usual."""
        return any(group.is_open for group in self.groups) or any(
            field.wrong or field.value not in ("", field.usual) for field in self.fields
        )


class FileChoice(Screen):
    """A file is chosen as a table, and how it is read is shown.

    folder, files: whose files are offered, and these.
    path, csv: the file that was chosen, and how it is written; empty where none was.
    sheets, sheet: of a file with sheets, and the one that was read.
    skip: how many lines or rows stand above the names of columns, where somebody said it.
    names, ids: the columns of the file, and those that name its rows.
    report: how it is read, a :class:`party_sdk.tables.CheckReport`; None where none was.
    warnings: what may be wrong, without what the report's problems say too.
    """

    folder: str
    files: tuple[Path, ...] = ()
    path: str = ""
    csv: str = ""
    sheets: tuple[str, ...] = ()
    sheet: str = ""
    skip: str = ""
    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    report: Any = Field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, Any]:
        """Return how each column is read, by its name."""
        read = () if self.report is None else self.report.columns
        return {column.name: column for column in read}

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what hinders the table, with lines."""
        return () if self.report is None else self.report.sentences


class TableReading(FileChoice):
    """A table is chosen for a session.

    place: the address of the page below that of the party.
    title, session, slot: the session, and the place in it.
    clustered, linking: the columns that are clustered, and those of match keys.
    is_mapped: whether a mapping mends the table.
    mends: whether there is a dictionary, by which a mapping can be drafted.
    described: whether it is settled which columns are clustered.
    checked: whether the table was held against the terms.
    """

    place: ClassVar[str]
    title: str
    session: str
    slot: str
    clustered: tuple[str, ...] = ()
    linking: tuple[str, ...] = ()
    is_mapped: bool = False
    mends: bool = False
    described: bool = False
    checked: bool = False

    @property
    def fits(self) -> bool:
        """Return whether the session may have the table."""
        return self.checked and bool(self.names) and not self.problems


class TableChoice(TableReading):
    """The table of a run is chosen.

    notify: addresses that the analyst is to tell, as they were typed.
    choices: what the party decides alone.
    earlier: the session of this home with the same variables, whose table is offered.
    mapping: by which the table is mended, as a hidden field has it.
    """

    template = "desk/table.html.j2"
    place = "table"
    earlier: str = ""
    mapping: str = Field(default="", repr=False)
    notify: str = ""
    choices: FieldGroup


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

    chosen, agreed: for the form that makes the file; ``TableForm`` of the desk.
    summary: what is said of them as a whole.
    """

    template = "desk/labelled-rows.html.j2"
    title: str
    session: str
    slot: str
    chosen: Any
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

    chosen, choices: for the form that places the order; ``TableForm`` of the desk.
    """

    template = "desk/rehearsal.html.j2"
    title: str
    session: str
    slot: str
    chosen: Any
    choices: FieldGroup
    played: Rehearsal


class OrderPage(Screen):
    """Where an order stands, and what it asks.

    status, question, table: of :mod:`party_sdk.supervisor`: an ``OrderStatus``, a
        ``PendingQuestion`` or None, and the name of the table's file.
    consent, withdrawn_at: of :mod:`party_sdk.party.party_session`: the yes that holds, or
        None, and when one was taken back.
    limit: the party's own choice that the trouble names; empty for none.
    members, safety_number: who takes part, once all have joined.
    for_good: whether the party has left after it had joined: it cannot be placed again.
    compares_runs: whether one of several numbers of clusters is to be chosen.
    """

    template = "desk/order.html.j2"
    title: str
    status: Any
    question: Any = None
    consent: Any = None
    withdrawn_at: AwareDatetime | None = None
    limit: str = ""
    now: AwareDatetime
    members: tuple[Seat, ...] = ()
    safety_number: str = ""
    table: str = ""
    for_good: bool = False
    compares_runs: bool = False


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


class TrialPage(RunReport, Screen):
    """The report of a table that was tried at once.

    path, csv, ids: the table, and how it was read.
    suggested: how the method and the number of clusters were found, as a sentence.
    left_out: why each column is not clustered.
    """

    template = "desk/trial.html.j2"
    path: str
    csv: str = ""
    ids: tuple[str, ...] = ()
    suggested: str
    left_out: dict[str, str] = Field(default={})


class CellLine(Value):
    """A text of the table, in so many rows, and what it stands for.

    chosen: the value of the option; empty where a person has to choose.
    """

    text: str = Field(repr=False)
    n_rows: int
    chosen: str


class VariableSource(Value):
    """A variable of the session, and how the table has it.

    found: what was found in the table, a :class:`party_sdk.tables.drafts.ColumnProposal`.
    said: what the mapping says, a :class:`party_sdk.tables.mapping.ColumnMapping`.
    source: the column of the table; empty where none is.
    is_drafted: whether it is the one that was found.
    candidates: the table's columns, the nearest first.
    conversions: of units, that lead to the variable's.
    options: what a text may stand for.
    asks: whether a person has to say something.
    """

    found: Any = Field(repr=False)
    said: Any = Field(repr=False)
    source: str = ""
    is_drafted: bool = False
    candidates: tuple[str, ...] = ()
    conversions: tuple[str, ...] = ()
    cells: tuple[CellLine, ...] = ()
    more_cells: int = 0
    options: tuple[Option, ...] = ()
    asks: bool = False

    @property
    def written(self) -> str:
        """Return the sign between thousands, '_', and the decimal sign; empty as found."""
        if not self.said.says_signs:
            return ""
        return f"{self.said.thousands or ''}_{self.said.decimal or ''}"

    @property
    def is_number(self) -> bool:
        """Return whether it holds numbers."""
        return self.found.type in {"number", "integer"}

    @property
    def has_minus(self) -> bool:
        """Return whether numbers with another minus sign are in the column."""
        found = self.is_drafted and self.found.minus is not None
        return found or self.said.minus is not None

    @property
    def has_limits(self) -> bool:
        """Return whether limits of detection are in the column."""
        found = self.is_drafted and any(cell.is_limit for cell in self.found.cells)
        return found or self.said.limits is not None


class RowsPreview(Value):
    """The first rows of a table, for its own people."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = Field(default=(), repr=False)


class MendedTable(Screen):
    """How a table becomes what a dictionary describes, to be changed and tried.

    place: the address of the page, below the root.
    session, slot: where the table is to take part; empty before any invitation.
    dictionary: the path of the dictionary, before any invitation.
    mapping: what holds so far, as a file has it.
    before, after: the first rows, as the table has them and as they are prepared.
    rows: how many rows are read, of those of the file.
    lines: lines that are left out, with blanks between.
    columns: those of the table, to choose what names rows.
    omitted: cells by which rows are left out: ``Column = cell``, one a line.
    problems, warnings: what hinders it, and what may be wrong.
    """

    template = "desk/mapping.html.j2"
    place: str
    title: str = ""
    session: str = ""
    slot: str = ""
    dictionary: str = ""
    path: str
    csv: str = ""
    ids: tuple[str, ...] = ()
    mapping: str = Field(default="", repr=False)
    variables: tuple[VariableSource, ...] = ()
    before: RowsPreview = RowsPreview()
    after: RowsPreview = RowsPreview()
    rows: str = ""
    lines: str = ""
    omitted: str = Field(default="", repr=False)
    columns: tuple[str, ...] = ()
    fits: bool = False
    problems: tuple[str, ...] = Field(default=(), repr=False)
    warnings: tuple[str, ...] = ()
    notify: str = ""
    choices: FieldGroup | None = None


class OwnTable(FileChoice):
    """A table is looked at before any invitation, with or without a dictionary.

    dictionary: the path of a dictionary; empty where none was named.
    is_named: whether it was said what names the rows: ranges are shown then.
    first: the first rows.
    """

    template = "desk/own-table.html.j2"
    dictionary: str = ""
    is_named: bool = False
    first: RowsPreview = RowsPreview()


class AtAnalyst(Screen):
    """The form that takes an analyst's address and a coordinator's key.

    given: whether both are known already, so that the form replaces them.
    environment: whether they came from the environment of the desk's process.
    wrong_key: why the key was refused.
    changed: whether the analyst shows another key than before, which may be said to be
        right.
    """

    template = "desk/analyst.html.j2"
    url: FormField
    given: bool
    environment: bool = False
    wrong_key: str = ""
    changed: bool = False


class SessionsPage(Screen):
    """The sessions of a coordinator's key, the newest first.

    here: ids of those that were opened from this home, where they can be checked.
    """

    template = "desk/sessions.html.j2"
    url: str
    rows: tuple[SessionLine, ...]
    here: frozenset[str]
    now: AwareDatetime


class MethodRow(Value):
    """A method that fits, as a row of the table.

    href: where a session with it is opened.
    """

    cells: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    href: str


class AdvicePage(Screen):
    """Questions, and once they are answered the methods that fit, the proposed one first.

    more: questions that have a good default, folded.
    wider: methods that would fit if the analyst might see distances; ``wider_href``
        is the page with that answer.
    others: reasons by protocol for what fits neither way.
    """

    template = "desk/advice.html.j2"
    questions: tuple[FormField, ...]
    more: FieldGroup
    answered: bool = False
    columns: tuple[str, ...] = ()
    legend: str = ""
    rows: tuple[MethodRow, ...] = ()
    wider: tuple[str, ...] = ()
    wider_href: str = ""
    others: dict[str, str] = Field(default={})


class SlotLine(Value):
    """A place as it stands in the form; row and column count from 1."""

    name: str = ""
    title: str = ""
    row: str = "1"
    column: str = "1"
    expected: str = ""


class ColumnGroup(Value):
    """What is said of the columns of one group; ``number`` counts from 1.

    fields: the table from which its dictionary is drafted, and how.
    elsewhere: the same of files outside the folder.
    variables: rows as :class:`party_sdk.tables.variables.Variable`.
    listed: the table whose variables these are; empty where they are typed.
    notes, wrong: by the number of a row, from 1.
    """

    number: int = Field(ge=1)
    fields: tuple[FormField, ...]
    elsewhere: FieldGroup
    variables: tuple[Any, ...] = ()
    listed: str = ""
    notes: dict[int, str] = Field(default={})
    wrong: dict[int, str] = Field(default={})


class NewSession(Screen):
    """One screen of the form that opens a session.

    number, title: of the screen; see ``SCREENS`` of the desk.
    fields, more: what it asks, and what is folded.
    slots, known: the places, and institutions whose cards were trusted here.
    keys: by which match keys rows are linked; None where none are.
    columns, roles, types: the variables, and what they may be.
    hidden: tuple of pair of str; what was said on the other screens, to be sent again.
    errors: tuple of pair of str; field ids with what is wrong there.
    earlier: the session that is repeated; empty where none is.
    """

    template = "desk/new.html.j2"
    number: int = Field(ge=1, le=3)
    title: str
    fields: tuple[FormField, ...] = ()
    more: tuple[FieldGroup, ...] = ()
    slots: tuple[SlotLine, ...] = ()
    known: tuple[Option, ...] = ()
    wrong_slots: str = ""
    keys: KeysChoice | None = None
    columns: tuple[ColumnGroup, ...] = ()
    roles: tuple[Option, ...] = ()
    types: tuple[Option, ...] = ()
    hidden: tuple[tuple[str, str], ...] = Field(repr=False)
    errors: tuple[tuple[str, str], ...] = ()
    earlier: str = ""


class Review(TermsSheet, Screen):
    """Terms as parties will see them, before the session is opened.

    hidden: tuple of pair of str; all that was said, to be sent again.
    cost: what several runs cost; empty for one.
    left_out: columns of tables that no dictionary describes.
    join_by: until when all have to join, if it is opened now.
    folder: where invitations are to be written.
    """

    template = "desk/review.html.j2"
    hidden: tuple[tuple[str, str], ...] = Field(repr=False)
    cost: str = ""
    left_out: tuple[str, ...] = ()
    join_by: AwareDatetime
    folder: FormField


class OneInvitation(Value):
    """An invitation, and the letter that goes with it."""

    slot: str
    title: str = ""
    invitation: str = Field(repr=False)
    letter: str


class Invitations(Screen):
    """Invitations that were just made, shown this once, or the files that hold them.

    folder: where they were written; empty where they are shown.
    """

    template = "desk/invitations.html.j2"
    session: str
    title: str
    made: tuple[OneInvitation, ...]
    folder: str = ""


class InvitationPage(Screen):
    """For which free places new invitations are made."""

    template = "desk/inviting.html.j2"
    session: str
    title: str
    free: tuple[SlotLine, ...]
    folder: FormField


class SessionDesk(Screen):
    """A session at its coordinator's desk.

    report: what its report says; without a sheet where terms are of another release.
    board: how far each party has come, as the analyst says it.
    now: when the page was made, from which ages count.
    pace: which of several runs continues, and the time left, in words.
    may: what may be done with the session now.
    updates: how many were made, and how many there may be; zeros where there are none.
    audit_lines: how many lines the audit has.
    here: whether it was opened from this home.
    """

    template = "desk/session.html.j2"
    report: SessionReport
    status: SessionStatus
    board: tuple[SlotEntry, ...]
    now: AwareDatetime
    pace: str
    may: tuple[Literal["cancel", "extend", "choose"], ...]
    updates: tuple[int, int] = (0, 0)
    timeline: Timeline
    audit_lines: int = Field(ge=0)
    here: bool
