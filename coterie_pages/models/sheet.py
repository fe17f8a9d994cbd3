"""The terms of a session, as people read and sign them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clustering_protocols.common.values import Value
from clustering_protocols.records.record import Reach
from clustering_protocols.terms.terms import Words
from coterie_pages.models.parts import Learns, NamedInstitution, Risk, Versions


class PlannedSlot(Value):
    """A slot before anybody sits there.

    row, column: the groups, from 0.
    expected: the institution that alone may sit there; None where the slot is open.
    own: whether it is the reader's.
    """

    slot: str
    title: str = ""
    row: int = Field(ge=0)
    column: int = Field(ge=0)
    expected: NamedInstitution | None = None
    own: bool = False


class ParameterLine(Value):
    """A parameter of the protocol: its value as JSON, and what it means.

    usual: whether the value is the default.
    """

    name: str
    value: str
    sentence: str = ""
    usual: bool


class Item(Value):
    """One field of a message: its name, and its declared form in words."""

    name: str
    form: str


class Message(Value):
    """A kind of message, and the closed list of what is in it."""

    kind: str
    sentence: str = ""
    items: tuple[Item, ...] = ()


class RoundKind(Value):
    """One kind of round: what is answered, and how often at least and at most."""

    task: str
    least: int
    most: int
    answer: Message


class Step(Value):
    """A stage: what a party sends to the analyst, and sealed to other parties.

    each_run: whether it is repeated for each number of clusters.
    results: what parties and coordinator are told at its end.
    """

    name: str
    each_run: bool
    asked: tuple[RoundKind, ...]
    sealed: tuple[Message, ...] = ()
    results: tuple[Message, ...] = ()


class FieldLine(Value):
    """A field of the dictionary, and what becomes of it before it is clustered."""

    name: str
    title: str = ""
    unit: str = ""
    form: str
    range: str = ""
    preparation: str = ""


class DictionaryFields(Value):
    """The dictionary of one column group, and who holds it."""

    column: int = Field(ge=0)
    slots: tuple[str, ...]
    own: bool = False
    fields: tuple[FieldLine, ...]


class SentKind(Value):
    """A kind of what a party sends: what it means, and who can read it."""

    meaning: str
    reach: Reach


class TermsSheet(Words):
    """Everything that a party agrees to when it joins.

    digest: SHA-256 of the exact text of the terms, hex.
    url: the analyst's address; empty where it is not known.
    coordinator, analyst: who signed the terms, and who runs the service. None where
        terms do not say.
    slot, you: the reader's slot and institution; empty for a coordinator.
    runs: the numbers of clusters and how one is chosen, as a sentence; empty for one.
    release: who reads what the clusters are like, as a sentence; empty where nobody
        does.
    storage: how long the analyst keeps what, as a sentence; empty where terms do not
        say.
    personal_data: what leaves of single people, in one sentence.
    sent: the kinds of what parties send, those that somebody reads first.
    categories: the variables that the dictionary describes, the reader's own first.
    answer_within, join_within: seconds.
    least_rows: the fewest rows of each party.
    paper: what to cite for the method; empty where there is no paper.
    audit: how many updates fit a party's audit of its sums; empty where it has none.
    """

    kind: Literal["terms-sheet"] = "terms-sheet"
    session: str
    title: str
    digest: str
    url: str = ""
    coordinator: NamedInstitution | None = None
    analyst: NamedInstitution | None = None
    slot: str = ""
    you: NamedInstitution | None = None
    protocol: str
    protocol_title: str
    summary: str
    parameters: tuple[ParameterLine, ...]
    places: tuple[PlannedSlot, ...]
    learns: tuple[Learns, ...]
    risks: tuple[Risk, ...]
    steps: tuple[Step, ...]
    runs: str = ""
    release: str = ""
    storage: str = ""
    personal_data: str = ""
    sent: tuple[SentKind, ...] = ()
    categories: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    dictionary: tuple[DictionaryFields, ...] = ()
    join_within: int
    answer_within: int
    least_rows: int
    paper: str = ""
    audit: str = ""
    versions: Versions
