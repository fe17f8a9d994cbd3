"""What the files of an order hold; each is JSON."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.terms.agreements import Seat
from clustering_protocols.terms.schema import Schema
from clustering_protocols.wire.states import SessionState, SlotState
from party_sdk.admission.table_files import NamedTable

if TYPE_CHECKING:
    from party_sdk.home.policy import Policy


class _StoredModel(BaseModel):
    """A value that a file holds; one of a newer release says more, and is read still."""

    model_config = ConfigDict(frozen=True)


class OrderedTable(_StoredModel):
    """A table and how to read it: what the options of ``party run`` say.

    Paths are absolute: the supervisor works in another folder than anyone who places it.

    path: a file.
    id_column, columns: as ``--id-column`` and ``--columns``; no columns stand for all
        but the ids.
    csv: as ``--csv``: texts such as ``delimiter=;``.
    dictionary: as the file of ``--schema``.
    mapping: the text of the file of ``--mapping``; its levels are cells, and ``repr``
        does not show them. By default the one that the home keeps counts.
    long_form: as ``--long``.
    allow: guards that are switched off, as ``--allow``.
    objects_file: as ``--objects``.
    """

    path: str
    id_column: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    dictionary: Schema | None = None
    mapping: str | None = Field(default=None, repr=False)
    allow: tuple[str, ...] = ()
    long_form: str | None = None
    objects_file: Path | None = None

    def to_named_table(self) -> NamedTable:
        """Return the table, to be opened.

        Raises InvalidParameters if ``csv`` holds what is not known.
        Raises InvalidData if the mapping does.
        """
        from party_sdk.tables import Dialect, How
        from party_sdk.tables.mapping import parse_mapping

        said = None
        if self.mapping is not None:
            said = parse_mapping(self.mapping.encode(), "mapping")

        how = How(
            id_column=self.id_column,
            columns=self.columns or None,
            schema=self.dictionary,
            dialect=Dialect.parse(self.csv),
            mapping=said,
            allow=self.allow,
        )
        return NamedTable(
            path=self.path,
            how=how,
            long_form=self.long_form,
            objects_file=self.objects_file,
        )


class Order(_StoredModel):
    """What a party is to do in the background.

    invitation: a secret; ``repr`` does not show it.
    table: none as long as nobody has named one: a question then.
    choices: what this party decides alone, as ``--choice``.
    ids_per_row: the guard of that name; None for what the policy says.
    labels, report: where labels (memberships stand beside them) and the report (HTML)
        are to be written; absolute. Without ``labels`` the result stays in the home.
    confirm, readable: whether each kind of contribution is a question before it leaves,
        or each that somebody can read.
    notify: addresses of mail that the analyst is to tell, as ``--notify``.
    force: whether files that are in the way are replaced.
    withdrawn: the reason, once it is withdrawn; empty for none given.
    """

    invitation: str = Field(repr=False)
    table: OrderedTable | None = None
    choices: dict[str, Any] = {}
    ids_per_row: float | None = Field(default=None, ge=0)
    labels: Path | None = None
    report: Path | None = None
    confirm: bool = False
    readable: bool = False
    notify: tuple[str, ...] = Field(default=(), repr=False)
    force: bool = False
    withdrawn: str | None = None
    table_digest: str | None = Field(
        default=None, description="SHA-256 of the file when the order was placed."
    )

    def apply_to(self, policy: Policy) -> Policy:
        """Return a policy with what this order says instead."""
        if self.ids_per_row is None:
            return policy
        return replace(policy, ids_per_row=self.ids_per_row)


class OrderState(StrEnum):
    """Where an order stands."""

    QUEUED = "queued"
    WAITING = "waiting-for-you"
    RUNNING = "running"
    COMPLETED = SessionState.COMPLETED.value
    FAILED = SessionState.FAILED.value
    DECLINED = SlotState.DECLINED.value


ENDED: Final = frozenset({OrderState.COMPLETED, OrderState.FAILED, OrderState.DECLINED})


class Trouble(_StoredModel):
    """What went wrong: a headline, what it was, and what to do."""

    headline: str
    detail: str
    remedy: str


class OrderStatus(_StoredModel):
    """Where an order stands, for anyone who looks.

    stage, stage_number, n_stages: what the session is at; stages count from 1.
    round, n_rounds: rounds count from 1 through all stages. ``n_rounds`` is the largest
        number of updates where the protocol says it, and ``updates`` how many are done.
    awaited, awaited_since: slots, or ``the analyst``, for whom the session waits.
    moved: by how much the last update moved the result, if the protocol tells.
    pace: which of several runs continues, and the time left, in words.
    outage_since: since when the analyst cannot be reached.
    trouble: why it failed, was declined, or is tried again.
    question: the id of the question that waits for a person.
    restarts: how often its process died and was started again.
    """

    session: str
    slot: str
    title: str = ""
    protocol: str = ""
    state: OrderState = OrderState.QUEUED
    stage: str | None = None
    stage_number: int | None = None
    n_stages: int | None = None
    round: int | None = None
    updates: int | None = None
    n_rounds: int | None = None
    awaited: tuple[str, ...] = ()
    awaited_since: AwareDatetime | None = None
    moved: float | None = None
    pace: str = ""
    outage_since: AwareDatetime | None = None
    trouble: Trouble | None = None
    question: str | None = None
    restarts: int = 0
    placed_at: AwareDatetime
    started_at: AwareDatetime | None = None
    changed_at: AwareDatetime
    ended_at: AwareDatetime | None = None

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is done unless it is placed again."""
        return self.state in ENDED


class QuestionKind(StrEnum):
    """What a person has to decide."""

    TABLE = "table"  # no rule names one: place the order with a table, or say no
    RISKS = "risks"
    SAFETY_NUMBER = "safety-number"
    MAPPING = "mapping"  # another one than the session is kept with
    AGREEING = "agreeing"  # signatures, keys and keyed digests, once for all
    CONTRIBUTION = "contribution"
    CHOICE = "choice"  # a contribution that the protocol asks about


class PendingQuestion(_StoredModel):
    """What a person has to decide; answered once, by yes or no.

    id: follows from what is asked: the same question after a restart has the same id.
    sentence: what is asked, in a sentence or two.
    risks: code and sentence of each risk that is to be accepted.
    safety_number, members: what is to be compared with the other members.
    contribution: what would be sent: arrays with name, shape, dtype, range and bytes, and
        envelopes. The ranges are the party's own: they belong on its operator's screen
        alone.
    """

    id: str
    kind: QuestionKind
    sentence: str
    risks: dict[str, str] = {}
    safety_number: str = ""
    members: tuple[Seat, ...] = ()
    contribution: Inspection | None = None
    asked_at: AwareDatetime


class Decision(_StoredModel):
    """What a person decided, when, and why.

    rest: whether a yes is to the rest of the kind too.
    """

    question: str
    kind: QuestionKind
    yes: bool
    rest: bool = False
    reason: str = ""
    at: AwareDatetime


class Decisions(_StoredModel):
    """All answers of an order, the oldest first."""

    given: tuple[Decision, ...] = ()

    def but_noes(self) -> Decisions:
        """Return those that said yes: anyone who places an order anew is asked again."""
        return Decisions(given=tuple(each for each in self.given if each.yes))

    def to(self, question: str) -> Decision | None:
        """Return the answer to a question, if there is one."""
        return next((each for each in self.given if each.question == question), None)
