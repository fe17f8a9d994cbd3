"""Models of what people read: terms, reports, frames and form fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.outcomes import OutcomeTable
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.record import Reach
from clustering_protocols.terms.session_risks import Harm, RiskLevel
from clustering_protocols.terms.terms import Slot, Words
from clustering_protocols.wire.answers import RunLine


class NamedInstitution(Value):
    """An institution.

    name: as on its trusted card, else as it calls itself; may be empty.
    known: whether its card is trusted here, or it is the reader's own institution.
    fingerprint: the fingerprint of its public key.
    """

    name: str = ""
    known: bool
    fingerprint: str


class Learns(Value):
    """A reader and the facts that it learns."""

    who: str
    what: str


class Risk(Value):
    """A risk of the terms, with its code and readers.

    Other fields as in :class:`~clustering_protocols.terms.session_risks.Risk`.
    """

    code: str
    sentence: str
    level: RiskLevel = RiskLevel.DESIGN
    harm: Harm = Harm.RESULT
    measured: str = ""
    remedy: str = ""
    detail: str = ""
    readers: tuple[Learns, ...] = ()


class Versions(Value):
    """The release that wrote a page, and the versions of protocol and terms."""

    coterie: str
    protocol: int
    terms: int


class _Place(Value):
    """A slot; ``row`` and ``column`` are its groups, from 0."""

    slot: str
    title: str = ""
    row: int = Field(ge=0)
    column: int = Field(ge=0)

    @classmethod
    def of(cls, slot: Slot, **more: Any) -> Self:
        """Return a slot of a layout."""
        position = {"title": slot.title, "row": slot.row, "column": slot.column}
        return cls(slot=slot.name, **position, **more)


class SlotEntry(_Place):
    """A slot and its party.

    state, read_at: from the analyst; empty if it was not asked.
    reason: why the slot is empty: the check that refused, or a person's own words.
    n_rows, n_columns: None until the party has joined.
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
    """Numbers in rows, one for each cluster; ``columns`` may be empty."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...]

    @property
    def heads(self) -> list[str]:
        """Return the headings of the table: the columns, or numbers from 1."""
        width = len(self.rows[0]) if self.rows else 0
        names = self.columns or tuple(str(number) for number in range(1, width + 1))
        return [f"#{name}" for name in names]


class Outline(Value):
    """The ellipse of one cluster of a mixture, on the same axes as :class:`Points`."""

    cluster: int = Field(ge=0)
    x: tuple[float, ...]
    y: tuple[float, ...]


class Points(Value):
    """Own rows on their two principal axes, without ids.

    x, y: standardised rows on the axes.
    labels: the cluster of each row; -1 for none.
    explained: the share of the variance on each axis.
    n_rows: rows of the table; fewer may be drawn.
    outlines: for a mixture, two standard deviations around each mean.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    labels: tuple[int, ...]
    explained: tuple[float, float]
    n_rows: int = Field(ge=0)
    outlines: tuple[Outline, ...] = ()


class LoggedLine(Value):
    """A numbered line of a party's log or of the analyst's audit."""

    number: int = Field(ge=1)
    at: AwareDatetime
    event: str
    round: int = Field(default=0, ge=0)
    attempt: int = Field(default=0, ge=0)
    digest: str = ""

    @classmethod
    def of(cls, entry: Mapping[str, Any], /, **more: Any) -> Self:
        """Return the line of a log entry; its empty fields take their defaults."""
        names = cls.model_fields.keys() & entry.keys()
        fields = {name: entry[name] for name in names if entry[name]}
        return cls.model_validate(fields | more)

    @property
    def attempted(self) -> str:
        """Return the round, with the number of a repeated attempt."""
        suffix = f".{self.attempt}" if self.attempt > 1 else ""
        return f"{self.round}{suffix}" if self.round else ""


class SentLine(LoggedLine):
    """A line of a party's log: a message that left, or a receipt.

    size: the bytes of a message.
    entry: the number of a receipt's line in the analyst's audit.
    told: notes that were shown to the operator before the message was sent.
    """

    size: int | None = None
    entry: int | None = None
    signed: bool = False
    told: dict[str, Any] = Field(default={})

    @property
    def sentence(self) -> str:
        """Return the line in words."""
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
    """One line of the analyst's audit."""

    slot: str = ""
    reason: str = ""

    @property
    def digest_or_reason(self) -> str:
        """Return the reason and the digest."""
        return f"{self.reason} {self.digest}".strip()


class PlannedSlot(_Place):
    """A slot of the terms.

    expected: the only institution that may join here; None if the slot is open.
    own: whether it is the reader's slot.
    """

    expected: NamedInstitution | None = None
    own: bool = False


class ParameterLine(Value):
    """A parameter of the protocol; ``usual``: whether its value is the default."""

    name: str
    value: str
    sentence: str = ""
    usual: bool


class Item(Value):
    """A field of a message, and its declared form in words."""

    name: str
    form: str


class Message(Value):
    """A kind of message with all its fields."""

    kind: str
    sentence: str = ""
    items: tuple[Item, ...] = ()


class RoundKind(Value):
    """A kind of round: the answer to a task, and how often it is due."""

    task: str
    least: int
    most: int
    answer: Message


class Step(Value):
    """A stage: what a party sends to the analyst, and in sealed form to other parties.

    each_run: whether it is repeated for each number of clusters.
    results: what parties and coordinator receive at its end.
    """

    name: str
    each_run: bool
    asked: tuple[RoundKind, ...]
    sealed: tuple[Message, ...] = ()
    results: tuple[Message, ...] = ()


class FieldLine(Value):
    """A field of the dictionary, and its preparation."""

    name: str
    title: str = ""
    unit: str = ""
    form: str
    range: str = ""
    preparation: str = ""


class DictionaryFields(Value):
    """The dictionary of a column group, and the slots that hold it."""

    column: int = Field(ge=0)
    slots: tuple[str, ...]
    own: bool = False
    fields: tuple[FieldLine, ...]


class SentKind(Value):
    """A kind of message that parties send: its meaning, and who can read it."""

    meaning: str
    reach: Reach


class TermsSheet(Words):
    """Everything that a party agrees to when it joins.

    digest: SHA-256 of the exact text of the terms, hex.
    consent: SHA-256 of all that a party accepts; see
        :func:`coterie_pages.views.terms_sheet.consent_digest`.
    url: the analyst's address; empty if unknown.
    coordinator, analyst: the institutions that signed the terms and run the service.
    slot, you: the reader's slot and institution; empty for a coordinator.
    runs, release, storage: the sections of the terms as sentences.
    personal_data: what is sent about single people, in one sentence.
    sent: the kinds of messages, readable ones first.
    categories: the variables of the dictionary, of the reader's column group if it has one.
    answer_within, join_within: seconds.
    least_rows: the fewest rows that a party may have.
    paper: what to cite for the method.
    audit: how many updates fit a party's audit of its sums; empty without an audit.
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
    """A served page: the name of its template, and the values that the template reads.

    The template reads the values as ``page``. The template of a sheet or report reads the
    sheet or report as ``page``, and the other values as ``own``.
    """

    def __init__(self, template: str, content: Any = None, /, **values: Any) -> None:
        self.template, self.shown = template, content
        vars(self).update(values)


class Refusal(Screen):
    """An error page: the problem and its remedy."""

    def __init__(self, title: str, detail: str, remedy: str = "") -> None:
        super().__init__("refusal.html.j2", title=title, detail=detail, remedy=remedy)


class _Report(Value):
    """The common part of a party's and a coordinator's report.

    sheet: the terms; None for a coordinator on another machine than the one that opened
        the session, because the terms can be checked only there.
    agreement, safety_number: empty until all have joined; the agreement as SHA-256, hex.
    sizes: rows of all parties in each cluster of the selected run; empty if they are not
        published.
    names: this home's names of the clusters; '' for a cluster without one.
    centroids: centroids of the selected run, if protocol and terms publish them.
    told: further published figures of the protocol.
    outcomes: intervals and tests of described variables.
    measured: agreement of this method with pooled clustering on the worst and the best
        public data set; None if it was not measured.
    way: the protocol's name for the method.
    counts_linked: whether people in common were counted, and nothing clustered.
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
        """Return whether variables were described and nothing was clustered."""
        return any(profile.is_description for profile in self.profiles)


class RunReport(_Report):
    """A party's report of its own run of a session.

    complete: whether the party has the result.
    ended: how the session ended without a result, as far as the party knows.
    n_rows: rows of the party's table; None until it has joined.
    linked: how many of these rows are linked to rows of others, as ``n of m``.
    own_sizes: own rows in each cluster.
    odd: warnings about the clusters, such as one with own rows only.
    without: own rows that are in no cluster or did not take part.
    points: the party's own rows on two axes.
    accepted: the accepted risk codes.
    mapping: the keyed digest of the mapping of the table; empty without one.
    left: the party's log, after its chain was checked.
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
    accepted: tuple[str, ...] = ()
    mapping: str = ""
    left: tuple[SentLine, ...] = ()


class SessionReport(_Report):
    """A coordinator's report of a session.

    state, reason: the session's state, and the problem that ended it early.
    audit: the analyst's log, after its chain and signature were checked.
    signed_by: the fingerprint of the key that signed it.
    """

    kind: Literal["session-report"] = "session-report"
    state: str
    reason: str = ""
    created_at: AwareDatetime
    risks: tuple[str, ...]
    audit: tuple[AuditRow, ...] = ()
    signed_by: str = ""


class OwnRun(Value):
    """A party's own rows in the run with one number of clusters.

    own_sizes, sizes: own rows, and rows of all parties, in each cluster.
    profile: the profile of the own rows; None without a dictionary.
    """

    n_clusters: int
    own_sizes: tuple[int, ...]
    sizes: tuple[int, ...]
    profile: Profile | None


class VariableDrift(Value):
    """A column of new rows, compared with the trained rows.

    shift: of the mean, in standard deviations of the trained rows; None if that is 0.
    outside: share of the new rows outside the trained range.
    """

    name: str
    shift: float | None = None
    outside: float


class ClusterDrift(Value):
    """New rows in a cluster; ``then``, ``now``: its share of trained and of new rows."""

    cluster: int = Field(ge=0)
    n_rows: int = Field(ge=0)
    then: float | None = None
    now: float


class NewRowsSummary(Value):
    """A summary of new rows.

    n_rows, n_labelled: all new rows, and those with a label.
    n_trained: own rows that the session clustered.
    outside: share of rows with a value outside the range of the trained rows.
    by_chance: upper bound on the mean ``outside`` of rows from the same distribution.
    farthest: the largest distance of a row to its centre; None if the party has no
        centres.
    variables: the columns that moved most; ``more_variables`` counts the others.
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
    """A link to a page; ``here``: whether that is the current page or its section."""

    href: str
    text: str
    here: bool = False


class Banner(Value):
    """Why the last action failed; ``remedy`` may say what to do now."""

    text: str
    remedy: str = ""


class Frame(Value):
    """The frame around a served page.

    root: the path above all pages, scripts and styles; empty for an unknown visitor.
    address: the path of this page, for its refreshes.
    token: a secret in every form, against forged requests from other sites.
    notice: a message above the page.
    seconds: time between refreshes; 0 for none.
    waits: whether the page waits for the person, which its title then says.
    """

    root: str = ""
    address: str = ""
    links: tuple[Link, ...] = ()
    token: str = Field(default="", repr=False)
    notice: Banner | None = None
    seconds: int = Field(default=0, ge=0)
    waits: bool = False


class FormField(Value):
    """A field of a form.

    name: the name under which the value is sent; with dots for a nested parameter.
    group: the topic under which a form folds the field.
    options: the text of each value of a choice.
    kind: ``choice``: one of the options, or empty for the default; ``tick``: yes or no.
    limits: type and limits in words.
    usual: the default as text; empty without one.
    wrong: why the value was refused.
    reloads: the action of the form when the value changes; empty for none.
    """

    name: str
    label: str
    hint: str = ""
    group: str = ""
    kind: Literal["text", "number", "choice", "long", "tick"] = "text"
    options: dict[str, str] = Field(default={})
    limits: str = ""
    usual: str = ""
    required: bool = False
    value: str = ""
    wrong: str = ""
    reloads: str = ""

    @property
    def id(self) -> str:
        """Return the field's id on the page; the list of errors links to it."""
        return field_id(self.name)


def field_id(name: str) -> str:
    """Return the id of a field on a page."""
    return f"field-{name.replace('.', '-')}"


class KeysChoice(Value):
    """The match keys by which a new session links rows without a common id.

    table: a table of this home on which the keys are tried.
    keys: one key per line, in order of precedence.
    lines: ``KeyPreview`` of :mod:`party_sdk.tables` for each key.
    needs: permissions that each party must give; empty for none.
    """

    table: FormField
    keys: FormField
    lines: tuple[Any, ...] = ()
    needs: str = ""
