"""What pages say of a session: terms, reports, frames and form fields."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import AwareDatetime, Field

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.outcomes import OutcomeTable
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.record import Reach
from clustering_protocols.terms.session_risks import Harm, RiskLevel
from clustering_protocols.terms.terms import Words
from clustering_protocols.wire.answers import RunLine


class NamedInstitution(Value):
    """An institution.

    name: of its trusted card, else as it calls itself; empty where it gives none.
    known: whether its card was trusted here, or it is the reader's own.
    fingerprint: of its public key.
    """

    name: str = ""
    known: bool
    fingerprint: str


class Learns(Value):
    """Who learns what."""

    who: str
    what: str


class Risk(Value):
    """What the terms let others learn or do: a code, and its sentence.

    level: where it comes from; see
        :class:`~clustering_protocols.terms.session_risks.RiskLevel`.
    harm: the worst that can follow.
    measured, remedy, detail: what was measured, what would remove it, and when it holds.
    readers: who learns what, of what is so in any session.
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
    """What wrote a page, and which release of the protocol it speaks of."""

    coterie: str
    protocol: int
    terms: int


class SlotEntry(Value):
    """A slot, and who sits there.

    row, column: the groups, from 0.
    state, read_at: as the analyst says it; empty where nobody has asked it.
    reason: why somebody does not sit there: a check's name, or words.
    n_rows, n_columns: None until somebody has joined.
    """

    slot: str
    title: str = ""
    row: int = Field(ge=0)
    column: int = Field(ge=0)
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
    """Numbers in rows, one for each cluster; ``columns`` may be empty: no names."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...]

    @property
    def heads(self) -> list[str]:
        """Return the headings of its table: names, or numbers from 1."""
        width = len(self.rows[0]) if self.rows else 0
        names = self.columns or tuple(str(number) for number in range(1, width + 1))
        return [f"#{name}" for name in names]


class Outline(Value):
    """The ellipse of one cluster of a mixture, on the same axes as :class:`Points`."""

    cluster: int = Field(ge=0)
    x: tuple[float, ...]
    y: tuple[float, ...]


class Points(Value):
    """Own rows on their two principal axes. No ids: a point has a place and a cluster.

    x, y: standardised rows on the axes.
    labels: the cluster of each; -1 for none.
    explained: the share of the spread that each axis shows.
    n_rows: how many rows there are; fewer may be drawn.
    outlines: of a mixture, two standard deviations around each mean.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    labels: tuple[int, ...]
    explained: tuple[float, float]
    n_rows: int = Field(ge=0)
    outlines: tuple[Outline, ...] = ()


class LoggedLine(Value):
    """One line of a log: of what left a party, or of the analyst's audit.

    number: of the line, in its log.
    digest: SHA-256 of what left.
    """

    number: int = Field(ge=1)
    at: AwareDatetime
    event: str
    round: int = Field(default=0, ge=0)
    attempt: int = Field(default=0, ge=0)
    digest: str = ""

    @property
    def attempted(self) -> str:
        """Return the round, with the attempt where it was not the first."""
        suffix = f".{self.attempt}" if self.attempt > 1 else ""
        return f"{self.round}{suffix}" if self.round else ""


class SentLine(LoggedLine):
    """One line of what left a party, or what the analyst acknowledged.

    size: in bytes, where the line has one.
    entry: the number of the receipt's line in the analyst's audit.
    told: what the operator was told before it left.
    """

    size: int | None = None
    entry: int | None = None
    signed: bool = False
    told: dict[str, Any] = Field(default={})

    @property
    def sentence(self) -> str:
        """Return what happened."""
        text = _EVENTS.get(self.event, self.event)
        if self.entry:
            text += f": line {self.entry} of its audit{', signed' * self.signed}"
        notes = "; ".join(f"{name}: {value}" for name, value in self.told.items())
        return f"{text}: {notes}" if notes else text


_EVENTS: Final = {
    "joining": "the party's line of the roster left",
    "mapping": "a mapping of the table was kept here: nothing left",
    "noting": "what the operator was told",
    "sending": "an answer left",
    "receipt": "the analyst acknowledged it",
}


class AuditRow(LoggedLine):
    """One line of the analyst's audit."""

    slot: str = ""
    reason: str = ""

    @property
    def digest_or_reason(self) -> str:
        """Return what else the line says."""
        return f"{self.reason} {self.digest}".strip()


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
    consent: SHA-256 of all that a party accepts; see
        :func:`coterie_pages.views.terms_sheet.consent_digest`.
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
    """A served page: the name of its template under ``templates``, and what that reads.

    The template reads all that is said as ``page``. On a page that shows a sheet or a
    report, that is ``page``, and what is said beside it ``own``.
    """

    def __init__(self, template: str, content: Any = None, /, **values: Any) -> None:
        self.template, self.shown = template, content
        vars(self).update(values)


class Refusal(Screen):
    """That something is not, or may not be, and what to do."""

    def __init__(self, title: str, detail: str, remedy: str = "") -> None:
        super().__init__("refusal.html.j2", title=title, detail=detail, remedy=remedy)


class Work(Value):
    """A stretch of time in which rounds continued, or somebody was awaited.

    rounds: how many rounds it holds; 0 while parties join.
    """

    begin: AwareDatetime
    end: AwareDatetime
    first_round: int = Field(ge=0)
    rounds: int = Field(default=0, ge=0)


class StageSpan(Value):
    """A stretch of time in which the rounds of one stage continued."""

    name: str
    begin: AwareDatetime
    end: AwareDatetime


class SlotAnswer(Value):
    """An answer of a slot: when it came, and to which round."""

    slot: str
    at: AwareDatetime
    round: int = Field(ge=0)


class Timeline(Value):
    """When stages and rounds were open, and when each slot answered.

    stages: none where the audit is of a release that did not name them.
    """

    stages: tuple[StageSpan, ...] = ()
    work: tuple[Work, ...] = ()
    answers: tuple[SlotAnswer, ...] = ()
    slots: tuple[str, ...] = ()
    joined: tuple[SlotAnswer, ...] = ()


class _Report(Value):
    """What both sides' reports say.

    sheet: the terms, whole. None for a coordinator on another machine than that on
        which the session was opened: only there can they be checked.
    agreement: SHA-256 of the agreement, hex; empty until all have joined.
    safety_number: empty until all have joined.
    sizes: rows of all parties in each cluster of the chosen run; empty where nobody
        tells.
    names: what people at home call each cluster; '' for those without a name.
    centroids: of the chosen run, where protocol and terms let them out.
    told: what else the protocol tells of the result.
    outcomes: intervals and tests of described variables, of profiles that have some.
    measured: agreement of this method with pooled clustering on the worst and the best
        public data set; None where it was not measured.
    way: the protocol's name for that way.
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
        """Return whether variables were described, and nothing was clustered."""
        return any(profile.is_description for profile in self.profiles)


class RunReport(_Report):
    """What a party may say of its own run of a session.

    complete: whether the result is there.
    ended: how the session ended without one, as far as the party was told.
    n_rows: rows of the party's table; None until it has joined.
    linked: how many of them are linked to rows of others, as ``n of m``.
    own_sizes: how many of them are in each cluster.
    odd: sentences on clusters that hold own rows alone, or none of them.
    without: how many are in none, or did not take part.
    points: the party's own rows on two axes.
    accepted: the risk codes that were accepted.
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
    """What a coordinator may say of a session.

    state, reason: where it stands, and the problem that ended it early.
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
    """What one number of clusters makes of the own rows.

    own_sizes: own rows in each cluster; sizes: rows of all parties.
    profile: of the own rows; None without a dictionary.
    """

    n_clusters: int
    own_sizes: tuple[int, ...]
    sizes: tuple[int, ...]
    profile: Profile | None


class RunOverlap(Value):
    """How the clusters of two runs share the own rows: a row for each of the first."""

    first: int
    second: int
    counts: tuple[tuple[int, ...], ...]


class VariableDrift(Value):
    """One column of new rows beside the trained ones.

    then, now: the mean, in the units of the table; the share of rows of a yes and no or
        of a level. None where it is not known.
    is_share, is_date: whether these are shares, or days since 1970-01-01.
    missing_then, missing_now: shares of rows without a value.
    shift: of the mean as it was clustered, in standard deviations of the trained rows;
        None where these are all alike.
    outside: share of the new rows outside the trained range.
    """

    name: str
    unit: str = ""
    is_share: bool = False
    is_date: bool = False
    then: float | None = None
    now: float | None = None
    missing_then: float | None = None
    missing_now: float | None = None
    shift: float | None = None
    outside: float


class ClusterDrift(Value):
    """One cluster: new rows in it, and the shares of own rows then and now."""

    cluster: int = Field(ge=0)
    n_rows: int = Field(ge=0)
    then: float | None = None
    now: float


class NewRowsSummary(Value):
    """What may be said of new rows as a whole.

    n_rows, n_labelled: how many there are, and how many have a label.
    n_trained: how many own rows the session clustered.
    outside: share of the rows with at least one value outside the range of the own
        trained rows.
    by_chance: the share outside that rows of the same distribution have at most, in the
        mean.
    farthest: the largest distance to the centre of the own cluster; None where a party
        knows no centre.
    variables: those that moved most come first.
    more_variables: how many more there are.
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
    """A way to another page of the same pages.

    here: whether it leads to the page that is shown, or to what that page is part of.
    """

    href: str
    text: str
    here: bool = False


class Banner(Value):
    """What was just done, or why it was not.

    remedy: what to do now; empty where there is nothing to do.
    """

    text: str
    remedy: str = ""
    good: bool = True


class Frame(Value):
    """What is around a served page.

    root: the path under which all of them, scripts and styles are.
    address: the path of this page, for what is shown anew.
    links: the ways to other pages.
    token: what every form sends back, so that no other site can send it.
    leave: where the form that leaves the desk is sent; empty where there is none.
    notice: shown above the page.
    seconds: after how long the page is shown anew by itself; 0 for never.
    waits: whether something on the page waits for the person: its title says so.
    """

    root: str
    address: str = ""
    links: tuple[Link, ...] = ()
    token: str = Field(default="", repr=False)
    leave: str = ""
    notice: Banner | None = None
    seconds: int = Field(default=0, ge=0)
    waits: bool = False


class Option(Value):
    """One of several values, and how people call it."""

    value: str
    text: str


class FormField(Value):
    """A field of a form.

    name: what the form sends; a dot reaches into a part.
    label, hint: what it is called, and what it means.
    group: what it is about, of fields that forms put together.
    kind: ``choice``: one of the options, or empty for the default; ``tick``: yes or
        nothing.
    limits: type and limits in words.
    usual: the default, as it would be written; empty where there is none.
    value: what stands in it.
    wrong: why that was refused.
    reloads: what its form asks for once another value is chosen; empty for nothing.
    """

    name: str
    label: str
    hint: str = ""
    group: str = ""
    kind: Literal["text", "number", "choice", "long", "tick"] = "text"
    options: tuple[Option, ...] = ()
    limits: str = ""
    usual: str = ""
    required: bool = False
    value: str = ""
    wrong: str = ""
    reloads: str = ""

    @property
    def id(self) -> str:
        """Return what it is called on the page, to which a list of errors leads."""
        return field_id(self.name)


def field_id(name: str) -> str:
    """Return the id of a field on a page."""
    return f"field-{name.replace('.', '-')}"


class KeysChoice(Value):
    """By which match keys a new session links rows that have no common id.

    table: one's own, on which the keys are tried.
    keys: one a line, the first counts first.
    lines: how that table's rows look by each: ``KeyPreview`` of :mod:`party_sdk.tables`.
    needs: what each party has to admit; empty where it need not.
    """

    table: FormField
    keys: FormField
    lines: tuple[Any, ...] = ()
    needs: str = ""
