"""Models of the content of pages: terms, reports, page frames and form fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.outcomes import OutcomeTable
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.record import Reach
from clustering_protocols.terms.session_risks import RiskLevel
from clustering_protocols.terms.terms import Slot, Words
from clustering_protocols.wire.answers import RunLine


class NamedInstitution(Value):
    """An institution with the fingerprint of its public key.

    name: the name on its trusted card, or otherwise the name that it gives itself; may
        be empty.
    known: whether its card is trusted here, or the institution is the reader's own.
    """

    name: str = ""
    known: bool
    fingerprint: str


class Learns(Value):
    """A reader of messages, such as the analyst, and what it learns from them."""

    who: str
    what: str


class Risk(Value):
    """A risk that the terms entail, with its code.

    The other fields are those of
    :class:`~clustering_protocols.terms.session_risks.Risk`.
    """

    code: str
    sentence: str
    level: RiskLevel = RiskLevel.DESIGN
    measured: str = ""
    remedy: str = ""
    detail: str = ""


class Versions(Value):
    """The release of Coterie that wrote a page, and its versions of protocol and terms."""

    coterie: str
    protocol: int
    terms: int


class _Place(Value):
    """A slot of the layout; ``row`` and ``column`` are its groups, counted from 0."""

    slot: str
    title: str = ""
    row: int = Field(ge=0)
    column: int = Field(ge=0)

    @classmethod
    def of(cls, slot: Slot, **more: Any) -> Self:
        """Create the model of a slot; ``more`` holds the values of its other fields."""
        position = {"title": slot.title, "row": slot.row, "column": slot.column}
        return cls(slot=slot.name, **position, **more)


class SlotEntry(_Place):
    """A slot and the party that holds it.

    state, read_at: as reported by the analyst; empty if the analyst was not asked.
    reason: why the slot is empty: which check refused the terms, or what a person
        wrote.
    n_rows, n_columns: the size of the party's table; None until the party has joined.
    """

    who: NamedInstitution | None = None
    own: bool = False
    state: str = ""
    reason: str = ""
    read_at: AwareDatetime | None = None
    stopped: str = ""
    joined_at: AwareDatetime | None = None
    n_rows: int | None = None
    n_columns: int | None = None


class Matrix(Value):
    """A matrix with one row for each cluster; ``columns`` may be empty."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...]

    @property
    def heads(self) -> list[str]:
        """Return the table headings: the names of the columns, or numbers from 1."""
        width = len(self.rows[0]) if self.rows else 0
        names = self.columns or tuple(str(number) for number in range(1, width + 1))
        return [f"#{name}" for name in names]


class Outline(Value):
    """The ellipse of one component of a mixture model, on the axes of :class:`Points`."""

    cluster: int = Field(ge=0)
    x: tuple[float, ...]
    y: tuple[float, ...]


class Points(Value):
    """The party's own rows projected onto two principal axes, without their ids.

    x, y: the coordinates of the standardised rows on the two axes.
    labels: the cluster of each row; -1 if it is in no cluster.
    explained: the proportion of the variance that each axis explains.
    n_rows: the number of rows in the table, of which only some may be drawn.
    outlines: for a mixture, the ellipse of two standard deviations of each cluster.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    labels: tuple[int, ...]
    explained: tuple[float, float]
    n_rows: int = Field(ge=0)
    outlines: tuple[Outline, ...] = ()


class LoggedLine(Value):
    """A numbered line of a party's log, or of the analyst's audit log."""

    number: int = Field(ge=1)
    at: AwareDatetime
    event: str
    round: int = Field(default=0, ge=0)
    attempt: int = Field(default=0, ge=0)
    digest: str = ""

    @classmethod
    def of(cls, entry: Mapping[str, Any], /, **more: Any) -> Self:
        """Create the line of a log entry; empty fields of the entry get their defaults."""
        names = cls.model_fields.keys() & entry.keys()
        fields = {name: entry[name] for name in names if entry[name]}
        return cls.model_validate(fields | more)

    @property
    def round_and_attempt(self) -> str:
        """Return the round number, followed by the attempt if it is not the first."""
        suffix = f".{self.attempt}" if self.attempt > 1 else ""
        return f"{self.round}{suffix}" if self.round else ""


class SentLine(LoggedLine):
    """A line of a party's log, such as a message that was sent or a receipt.

    size: the size of a message in bytes.
    entry: for a receipt, the number of its line in the analyst's audit log.
    told: the notes that were shown to the operator before the message was sent.
    """

    size: int | None = None
    entry: int | None = None
    signed: bool = False
    told: dict[str, Any] = Field(default={})

    @property
    def sentence(self) -> str:
        """Return a sentence that describes the line."""
        text = _EVENTS.get(self.event, self.event)
        if self.entry:
            text += f": line {self.entry} of its audit{', signed' * self.signed}"
        notes = "; ".join(f"{name}: {value}" for name, value in self.told.items())
        return f"{text}: {notes}" if notes else text


_EVENTS: Final = {
    "joining": "the party's line of the roster was sent",
    "mapping": "a mapping of the table was stored here; nothing was sent",
    "noting": "shown to the operator",
    "sending": "a contribution was sent",
    "receipt": "the analyst acknowledged it",
}


class AuditRow(LoggedLine):
    """A line of the analyst's audit log."""

    slot: str = ""
    reason: str = ""

    @property
    def digest_or_reason(self) -> str:
        """Return the reason and the digest, separated by a space; either may be empty."""
        return f"{self.reason} {self.digest}".strip()


class PlannedSlot(_Place):
    """A slot that the terms define; ``own`` marks the reader's slot.

    expected: the only institution that may take the slot; None if it is open to any.
    """

    expected: NamedInstitution | None = None
    own: bool = False


class ParameterLine(Value):
    """A parameter of the protocol; ``usual`` says whether its value is the default."""

    name: str
    value: str
    sentence: str = ""
    usual: bool


class Item(Value):
    """A field of a message, with a description of its type."""

    name: str
    form: str


class Message(Value):
    """A kind of message with all its fields."""

    kind: str
    sentence: str = ""
    items: tuple[Item, ...] = ()


class RoundKind(Value):
    """A kind of round: its task, the answer, and how many times it can occur."""

    task: str
    least: int
    most: int
    answer: Message


class Step(Value):
    """A stage of the protocol, with the messages that a party sends and receives in it.

    each_run: whether the stage is repeated for each number of clusters.
    results: what the parties and the coordinator receive at the end of the stage.
    """

    name: str
    each_run: bool
    asked: tuple[RoundKind, ...]
    sealed: tuple[Message, ...] = ()
    results: tuple[Message, ...] = ()


class FieldLine(Value):
    """A variable of the data dictionary, and how it is prepared for clustering."""

    name: str
    title: str = ""
    unit: str = ""
    form: str
    range: str = ""
    preparation: str = ""


class DictionaryFields(Value):
    """The data dictionary of a column group, and the slots whose tables use it."""

    column: int = Field(ge=0)
    slots: tuple[str, ...]
    own: bool = False
    fields: tuple[FieldLine, ...]


class SentKind(Value):
    """The meaning of a kind of message that parties send, and who can read it."""

    meaning: str
    reach: Reach


class TermsSheet(Words):
    """The terms sheet: everything that a party agrees to when it joins.

    digest: the SHA-256 of the exact text of the terms, in hex.
    consent: the SHA-256 of all that a party accepts, in hex; see ``consent_digest``.
    url: the analyst's address; empty if unknown.
    coordinator: the institution that signed the terms.
    analyst: the institution that runs the service.
    slot, you: the reader's slot and institution; empty for a coordinator.
    runs, release, storage: sentences that summarise these sections of the terms.
    personal_data: one sentence about the data of individual people that are sent.
    sent: the kinds of messages that are sent, starting with those that others can read.
    categories: the variables of the reader's column group or, for a coordinator, of all
        column groups.
    answer_within, join_within: time limits in seconds.
    least_rows: the minimum number of rows that a party must have.
    paper: the publication to cite for the method.
    audit: a sentence on how many updates a party's audit of its own sums allows; empty
        if the method has no such audit.
    """

    kind: Literal["terms-sheet"] = "terms-sheet"
    session: str
    title: str
    digest: str
    consent: str = ""
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


class Screen:
    """A served page: the name of its template and the values that the template uses.

    The template accesses the values as ``page``. The template of a terms sheet or
    report accesses the sheet or report as ``page``, and the other values as ``own``.
    """

    def __init__(self, template: str, content: Any = None, /, **values: Any) -> None:
        self.template, self.shown = template, content
        vars(self).update(values)


class Refusal(Screen):
    """An error page that states the problem, its remedy, and a page that may help."""

    def __init__(
        self, title: str, detail: str, remedy: str = "", link: Link | None = None
    ) -> None:
        fields = {"title": title, "detail": detail, "remedy": remedy, "link": link}
        super().__init__("refusal.html.j2", **fields)


class _Report(Value):
    """The fields that the reports of a party and of a coordinator have in common.

    sheet: the terms; None for a coordinator on a machine that did not open the session,
        because the terms cannot be verified there.
    agreement: the SHA-256 of the agreement in hex; empty until all parties have joined.
    safety_number: the number that members compare; empty until all parties have joined.
    sizes: the number of all parties' rows in each cluster of the selected run; empty if
        the sizes are not published.
    names: the names that this home gave to the clusters; '' for a cluster without a
        name.
    centroids: the centroids of the selected run, if protocol and terms publish them.
    told: further values that the protocol publishes with the result, by name.
    outcomes: intervals and tests of variables that are described but not clustered.
    measured: the agreement of this method with pooled clustering on the worst and the
        best public data set; None if it was not measured.
    way: the protocol's name for the method.
    counts_linked: whether the session only counted the people in common.
    """

    session: str
    title: str
    protocol: str
    sheet: TermsSheet | None
    agreement: str = ""
    seats: tuple[SlotEntry, ...] = ()
    safety_number: str = ""
    runs: tuple[RunLine, ...] = ()
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    centroids: Matrix | None = None
    told: dict[str, Any] = Field(default={})
    profiles: tuple[Profile, ...] = ()
    outcomes: tuple[OutcomeTable, ...] = ()
    way: str = ""
    measured: tuple[float, float] | None = None
    versions: Versions
    counts_linked: bool = False

    @property
    def is_description(self) -> bool:
        """Return whether the session only described variables and clustered nothing."""
        return any(profile.is_description for profile in self.profiles)


class RunReport(_Report):
    """A party's report of its own part in a session.

    complete: whether the party has the result.
    ended: how the session ended without a result, as far as the party knows.
    n_rows: the number of rows in the party's table; None until it has joined.
    linked: how many of these rows are linked to rows of other parties, as ``n of m``.
    own_sizes: the number of the party's own rows in each cluster.
    odd: warnings about the clusters, such as one that has only rows of this party.
    without: the number of own rows that are in no cluster or did not take part.
    points: the party's own rows on two principal axes.
    mapping: the keyed digest of the table's mapping; empty without a mapping.
    left: the party's log, whose hash chain was verified.
    """

    kind: Literal["run-report"] = "run-report"
    slot: str
    complete: bool
    ended: str = ""
    n_rows: int | None = None
    linked: str = ""
    own_sizes: tuple[int, ...] = ()
    odd: tuple[str, ...] = ()
    without: int = Field(default=0, ge=0)
    points: Points | None = None
    mapping: str = ""
    left: tuple[SentLine, ...] = ()


class SessionReport(_Report):
    """A coordinator's report of a session.

    state, reason: the state of the session, and the problem that ended it early.
    audit: the analyst's audit log, whose hash chain and signature were verified.
    signed_by: the fingerprint of the key that signed the log.
    """

    kind: Literal["session-report"] = "session-report"
    state: str
    reason: str = ""
    created_at: AwareDatetime
    audit: tuple[AuditRow, ...] = ()
    signed_by: str = ""


class OwnRun(Value):
    """How the run with one number of clusters divides a party's own rows.

    own_sizes, sizes: the numbers of own rows, and of rows of all parties, in each
        cluster.
    profile: the profile of the own rows; None without a data dictionary.
    """

    n_clusters: int
    own_sizes: tuple[int, ...]
    sizes: tuple[int, ...]
    profile: Profile | None


class VariableDrift(Value):
    """How a column of new rows differs from the rows that were clustered.

    shift: the difference of the means, in standard deviations of the clustered rows;
        None if that standard deviation is 0.
    outside: the proportion of new rows outside the range of the clustered rows.
    """

    name: str
    shift: float | None = None
    outside: float


class ClusterDrift(Value):
    """A cluster's share of clustered rows (``then``) and of new rows (``now``)."""

    cluster: int = Field(ge=0)
    n_rows: int = Field(ge=0)
    then: float | None = None
    now: float


class NewRowsSummary(Value):
    """A summary of new rows that were labelled with a stored result.

    n_rows, n_labelled: the number of new rows, and how many of them have a label.
    n_trained: the number of own rows that the session clustered.
    outside: the proportion of new rows with a value outside the clustered rows' range.
    by_chance: an upper bound on the mean of ``outside`` if the new rows have the same
        distribution as the clustered rows.
    farthest: the largest distance of a row to its centre; None if there are no centres.
    variables: the columns that drifted most; ``more_variables`` counts the others.
    """

    n_rows: int = Field(ge=0)
    n_labelled: int = Field(ge=0)
    n_trained: int
    outside: float
    by_chance: float
    farthest: float | None = None
    clusters: tuple[ClusterDrift, ...] = ()
    variables: tuple[VariableDrift, ...] = ()
    more_variables: int = Field(default=0, ge=0)


class Link(Value):
    """A link in the navigation; ``here`` marks the current page or section."""

    href: str
    text: str
    here: bool = False


class Banner(Value):
    """A message that explains why the last action failed, with an optional remedy."""

    text: str
    remedy: str = ""


class Frame(Value):
    """The frame around a served page.

    root: the URL path above all pages, scripts and styles; empty for an unknown
        visitor.
    address: the URL path of this page, from which it is refreshed.
    token: the anti-forgery (CSRF) token that every form contains.
    notice: a message that is shown above the page.
    seconds: the time between refreshes; 0 if the page is not refreshed.
    waits: whether the page waits for input, in which case its title says so.
    """

    root: str = ""
    address: str = ""
    links: tuple[Link, ...] = ()
    token: str = Field(default="", repr=False)
    notice: Banner | None = None
    seconds: int = Field(default=0, ge=0)
    waits: bool = False


class FormField(Value):
    """A field of an HTML form.

    name: the name under which the form submits the value; with dots if it is nested.
    group: the topic under which the form groups the field.
    options: the text to display for each value of a choice.
    kind: a ``choice`` may be left empty for the default; a ``tick`` is a checkbox.
    limits: the type of the value and its limits in words.
    default: the default value as text; empty if there is none.
    error: the error message for the submitted value; empty if the value is valid.
    reloads: the form action to submit to when the value changes; empty for none.
    """

    name: str
    label: str
    hint: str = ""
    group: str = ""
    kind: Literal["text", "number", "choice", "long", "tick"] = "text"
    options: dict[str, str] = Field(default={})
    limits: str = ""
    default: str = ""
    required: bool = False
    value: str = ""
    error: str = ""
    reloads: str = ""

    @property
    def id(self) -> str:
        """Return the HTML id of the field, to which the list of errors links."""
        return field_id(self.name)


def field_id(name: str) -> str:
    """Return the HTML id of the field with this name."""
    return f"field-{name.replace('.', '-')}"
