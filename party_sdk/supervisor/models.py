"""What the files of an order hold; each is JSON."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from clustering_protocols.schema import Schema
from clustering_protocols.wire.states import SessionState, SlotState
from party_sdk.inspection import Inspection
from party_sdk.named_tables import NamedTable


class _Kept(BaseModel):
    """A value that a file holds; one of a newer release says more, and is read still."""

    model_config = ConfigDict(frozen=True)


class OrderedTable(_Kept):
    """A table and how to read it: what the options of ``party run`` say.

    Paths are absolute: the supervisor works in another folder than whoever places it.

    Attributes
    ----------
    path : str
        A file, as an absolute path, or ``postgresql://…``.
    id_column, columns : tuple of str
        As ``--id-column`` and ``--columns``; no columns stand for all but the ids.
    csv : tuple of str
        As ``--csv``: texts such as ``delimiter=;``.
    dictionary : Schema, optional
        As the file of ``--schema``.
    query, long_form : str, optional
        As ``--query`` and ``--long``.
    allow : tuple of str
        Guards that are switched off, as ``--allow``.
    objects_file : Path, optional
        As ``--objects``.
    """

    path: str
    id_column: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    dictionary: Schema | None = None
    query: str | None = None
    allow: tuple[str, ...] = ()
    long_form: str | None = None
    objects_file: Path | None = None

    def named(self) -> NamedTable:
        """Return the table, to be opened.

        Raises
        ------
        InvalidParameters
            If ``csv`` holds what is not known.
        """
        from party_sdk.tables import Dialect, How

        how = How(
            id_column=self.id_column,
            columns=self.columns or None,
            schema=self.dictionary,
            dialect=Dialect.parse(self.csv),
            query=self.query,
            allow=self.allow,
        )
        return NamedTable(
            path=self.path,
            how=how,
            long_form=self.long_form,
            objects_file=self.objects_file,
        )


class Order(_Kept):
    """What a party is to do in the background.

    Attributes
    ----------
    invitation : str
        A secret; ``repr`` does not show it.
    table : OrderedTable, optional
        None as long as nobody has named one: a question then.
    choices : dict
        What this party decides alone, as ``--choice``.
    labels, report : Path, optional
        Where labels (memberships stand beside them) and the report (HTML) are to be
        written; absolute. Without ``labels`` the result stays in the home.
    confirm : bool
        Whether each contribution is a question before it leaves.
    notify : tuple of str
        Addresses of mail or webhooks that the analyst is to tell, as ``--notify``.
    ca_file : Path, optional
    allow_http : bool
        As the options of these names.
    force : bool
        Whether files that are in the way are replaced.
    withdrawn : str, optional
        The reason, once it is withdrawn; empty for none given.
    """

    invitation: str = Field(repr=False)
    table: OrderedTable | None = None
    choices: dict[str, Any] = {}
    labels: Path | None = None
    report: Path | None = None
    confirm: bool = False
    notify: tuple[str, ...] = Field(default=(), repr=False)
    ca_file: Path | None = None
    allow_http: bool = False
    force: bool = False
    withdrawn: str | None = None
    table_digest: str | None = Field(
        default=None, description="SHA-256 of the file when the order was placed."
    )


class OrderState(StrEnum):
    """Where an order stands."""

    QUEUED = "queued"
    WAITING = "waiting-for-you"
    RUNNING = "running"
    COMPLETED = SessionState.COMPLETED.value
    FAILED = SessionState.FAILED.value
    DECLINED = SlotState.DECLINED.value


ENDED: Final = frozenset({OrderState.COMPLETED, OrderState.FAILED, OrderState.DECLINED})


class Trouble(_Kept):
    """What went wrong: a headline, what it was, and what to do."""

    headline: str
    detail: str
    remedy: str


class OrderStatus(_Kept):
    """Where an order stands, for whoever looks.

    Attributes
    ----------
    stage, stage_number, n_stages
        What the session is at; stages count from 1.
    round, n_rounds
        Rounds count from 1 through all stages. ``n_rounds`` is the largest number of
        updates where the protocol says it, and ``updates`` how many are done.
    awaited, awaited_since
        Slots, or ``the analyst``, for whom the session waits.
    moved : float, optional
        By how much the last update moved the result, if the protocol tells.
    outage_since : datetime, optional
        Since when the analyst cannot be reached.
    trouble : Trouble, optional
        Why it failed, was declined, or is tried again.
    question : str, optional
        The id of the question that waits for a person.
    restarts : int
        How often its process died and was started again.
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
    AGREEING = "agreeing"  # signatures, keys and keyed digests, once for all
    CONTRIBUTION = "contribution"
    CHOICE = "choice"  # a contribution that the protocol asks about


class AskedMember(_Kept):
    """A member, beside the safety number."""

    slot: str
    name: str
    known: bool
    fingerprint: str
    n_rows: int
    n_columns: int


class Question(_Kept):
    """What a person has to decide; answered once, by yes or no.

    Attributes
    ----------
    id : str
        Follows from what is asked: the same question after a restart has the same id.
    sentence : str
        What is asked, in a sentence or two.
    risks : dict
        Code and sentence of each risk that is to be accepted.
    safety_number, members
        What is to be compared with the other members.
    contribution : Inspection, optional
        What would leave: arrays with name, shape, dtype, range and bytes, and envelopes.
        The ranges are the party's own: they belong on its operator's screen alone.
    """

    id: str
    kind: QuestionKind
    sentence: str
    risks: dict[str, str] = {}
    safety_number: str = ""
    members: tuple[AskedMember, ...] = ()
    contribution: Inspection | None = None
    asked_at: AwareDatetime


class Answer(_Kept):
    """What a person decided, when, and why."""

    question: str
    kind: QuestionKind
    yes: bool
    reason: str = ""
    at: AwareDatetime


class Answers(_Kept):
    """All answers of an order, the oldest first."""

    given: tuple[Answer, ...] = ()

    def but_noes(self) -> Answers:
        """Return those that said yes: whoever places an order anew is asked again."""
        return Answers(given=tuple(each for each in self.given if each.yes))

    def to(self, question: str) -> Answer | None:
        """Return the answer to a question, if there is one."""
        return next((each for each in self.given if each.question == question), None)
