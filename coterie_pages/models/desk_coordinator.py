"""Pages of the desk at home for whoever opens sessions."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from clustering_protocols.values import Value
from coterie_pages.models.fields import FormField, Option
from coterie_pages.models.parts import Expected, Learns, Risk
from coterie_pages.models.screens import OneSession, Screen
from coterie_pages.models.sheet import TermsSheet


class AtAnalyst(Screen):
    """The form that takes an analyst's address and a coordinator's key.

    Attributes
    ----------
    given : bool
        Whether both are known already, so that the form replaces them.
    environment : bool
        Whether they came from the environment of the desk's process.
    wrong_key : str
        Why the key was refused.
    changed : bool
        Whether the analyst shows another key than before, which may be said to be right.
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


class Coordinating(Screen):
    """The sessions of a coordinator's key, the newest first."""

    template = "desk/sessions.html.j2"
    url: str
    rows: tuple[OpenedRow, ...]
    now: AwareDatetime


class FitCard(Value):
    """A way that fits a situation, with what follows from it.

    Attributes
    ----------
    analyst, with_party : str
        What the analyst can work out, alone and together with one party.
    rounds, measured, dial : str
        In sentences; measured is empty where nothing was.
    large : tuple of str
        What a session of so many rows takes, where that is much.
    href : str
        Where a session with it is opened.
    """

    protocol: str
    way: str
    title: str
    what_for: str
    analyst: str
    with_party: str
    rounds: str
    dial: str = ""
    measured: str = ""
    large: tuple[str, ...] = ()
    figures: tuple[Expected, ...] = ()
    learns: tuple[Learns, ...]
    risks: tuple[Risk, ...]
    stages: tuple[str, ...]
    href: str


class NoFit(Value):
    """A protocol that does not fit, and why."""

    protocol: str
    reasons: tuple[str, ...]


class Advising(Screen):
    """Questions, and once they are answered what fits."""

    template = "desk/advice.html.j2"
    questions: tuple[FormField, ...]
    answered: bool = False
    fits: tuple[FitCard, ...] = ()
    others: tuple[NoFit, ...] = ()


class SlotLine(Value):
    """A place as it stands in the form; row and column count from 1."""

    name: str = ""
    title: str = ""
    row: str = "1"
    column: str = "1"
    expected: str = ""


class DraftedField(Value):
    """A column of a table from which a dictionary is drafted, and whether it is taken.

    kind: its type, as the table shows it.
    """

    name: str
    kind: str
    taken: bool


class ColumnsLine(Value):
    """What is said of the columns of one group; ``number`` counts from 1.

    file: of a dictionary; table: of one's own, from which one is drafted; ids: the
    columns of that which name rows; levels: whether words become levels; fields: the
    columns of the table; listed: of which table, and ids, these are.
    """

    number: int = Field(ge=1)
    file: str = ""
    table: str = ""
    ids: str = ""
    levels: bool = False
    fields: tuple[DraftedField, ...] = ()
    listed: str = ""
    wrong: str = ""


class NewSession(Screen):
    """The form that opens a session.

    Attributes
    ----------
    method : FormField
        The protocols to choose from.
    title, summary : str
        Of the protocol that is chosen.
    about, parameters, more, runs, rest : tuple of FormField
        Words for people; parameters that are needed, and the others; how one of several
        numbers of clusters is chosen; deadlines, guards, gaps and profiles.
    chosen : int
        How many of ``more`` are not as usual.
    known : tuple of Option
        Institutions whose cards were trusted here.
    wrong_slots : str
        What is wrong with the places together.
    hidden : tuple of pair of str
        What else the form sends.
    """

    template = "desk/new.html.j2"
    method: FormField
    title: str
    summary: str
    about: tuple[FormField, ...]
    parameters: tuple[FormField, ...]
    more: tuple[FormField, ...]
    runs: tuple[FormField, ...]
    rest: tuple[FormField, ...]
    chosen: int = Field(default=0, ge=0)
    slots: tuple[SlotLine, ...]
    known: tuple[Option, ...] = ()
    wrong_slots: str = ""
    columns: tuple[ColumnsLine, ...]
    folder: str


class Review(TermsSheet, Screen):
    """Terms as parties will see them, before the session is opened.

    Attributes
    ----------
    action : str
        Where the form is sent that opens the session, or goes back.
    hidden : tuple of pair of str
        All that was said, to be sent again.
    cost : str
        What several runs cost; empty for one.
    left_out : tuple of str
        Columns of tables that no dictionary describes.
    join_by : datetime
        Until when all have to join, if it is opened now.
    folder : FormField
        Where invitations are to be written.
    """

    template = "desk/review.html.j2"
    action: str
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


class Inviting(Screen):
    """For which free places new invitations are made."""

    template = "desk/inviting.html.j2"
    session: str
    title: str
    free: tuple[SlotLine, ...]
    folder: FormField


class Watched(OneSession):
    """A session at its coordinator's desk.

    here: whether it was opened from this home.
    free: how many places wait for somebody to join.
    """

    template = "desk/session.html.j2"
    here: bool
    free: int = Field(default=0, ge=0)


class Repeating(Screen):
    """A session with the terms of an earlier one, perhaps without some of its places."""

    template = "desk/repeat.html.j2"
    session: str
    title: FormField
    slots: tuple[SlotLine, ...]
    without: tuple[str, ...] = ()
