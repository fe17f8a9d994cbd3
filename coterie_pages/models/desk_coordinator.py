"""Pages of the desk at home for anyone who opens sessions."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from coterie_pages.models.fields import FormField, KeysChoice, Option
from coterie_pages.models.reports import SessionReport
from coterie_pages.models.screens import Screen, SessionStatusView, Timeline
from coterie_pages.models.sheet import TermsSheet


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


class OpenedRow(Value):
    """A session in the list of a key.

    here: whether it was opened from this home, where it can be checked and invited to.
    """

    id: str
    title: str
    state: str
    round: int = Field(ge=0)
    created_at: AwareDatetime
    here: bool
    over: bool


class SessionsPage(Screen):
    """The sessions of a coordinator's key, the newest first."""

    template = "desk/sessions.html.j2"
    url: str
    rows: tuple[OpenedRow, ...]
    now: AwareDatetime


class MethodRow(Value):
    """A method that fits, as a row of the table.

    href: where a session with it is opened.
    """

    cells: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    href: str


class AdvicePage(Screen):
    """Questions, and once they are answered the table of methods that fit.

    wider: methods that would fit if the analyst might see distances; ``wider_href``
        is the page with that answer.
    others: reasons by protocol for what fits neither way.
    """

    template = "desk/advice.html.j2"
    questions: tuple[FormField, ...]
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


class VariableLine(Value):
    """A variable of a dictionary as it stands in the form: a row of texts.

    hint: why it is proposed to be left out.
    wrong: why the row describes no variable.
    """

    name: str
    role: str
    type: str
    unit: str = ""
    minimum: str = ""
    maximum: str = ""
    levels: str = ""
    title: str = ""
    decimals: str = ""
    hint: str = ""
    wrong: str = ""


class ColumnsLine(Value):
    """What is said of the columns of one group; ``number`` counts from 1.

    file: of a dictionary; table: of one's own, from which one is drafted; ids: the
    columns of that which name rows; levels: whether words become levels; variables: the
    columns of the table; listed: of which table, and ids, these are; roles, types: what
    a variable may be.
    """

    number: int = Field(ge=1)
    file: str = ""
    table: str = ""
    ids: str = ""
    levels: bool = False
    variables: tuple[VariableLine, ...] = ()
    roles: tuple[Option, ...] = ()
    types: tuple[Option, ...] = ()
    listed: str = ""
    wrong: str = ""


class FieldGroup(Value):
    """Parameters of one kind; ``changed``: how many are not as usual."""

    title: str
    fields: tuple[FormField, ...]
    changed: int = Field(default=0, ge=0)


class NewSession(Screen):
    """The form that opens a session.

    method: the protocols to choose from.
    title, summary: of the protocol that is chosen.
    about, parameters, groups, runs, rest: words for people; parameters that are needed,
        and the others; how one of several numbers of clusters is chosen; deadlines,
        guards, gaps and profiles.
    split: which of patients and variables the parties share.
    keys: by which match keys rows are linked; None where the method links none.
    known: institutions whose cards were trusted here.
    wrong_slots: what is wrong with the places together.
    earlier: the session that is repeated; empty where none is.
    """

    template = "desk/new.html.j2"
    method: FormField
    title: str
    summary: str
    about: tuple[FormField, ...]
    parameters: tuple[FormField, ...]
    groups: tuple[FieldGroup, ...]
    runs: tuple[FormField, ...]
    rest: tuple[FormField, ...]
    split: FormField
    keys: KeysChoice | None = None
    slots: tuple[SlotLine, ...]
    known: tuple[Option, ...] = ()
    wrong_slots: str = ""
    columns: tuple[ColumnsLine, ...]
    folder: str
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
    audit_lines: how many lines the audit has.
    n_clusters: of the runs, where one may be chosen.
    here: whether it was opened from this home.
    free: how many places wait for somebody to join.
    """

    template = "desk/session.html.j2"
    report: SessionReport
    standing: SessionStatusView
    timeline: Timeline
    audit_lines: int = Field(ge=0)
    n_clusters: tuple[int, ...] = ()
    here: bool
    free: int = Field(default=0, ge=0)
