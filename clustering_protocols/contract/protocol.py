"""A protocol of the catalogue: its parameters, stages, risks and examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.recipe import Preparation
from clustering_protocols.records import Record
from clustering_protocols.release import Release
from clustering_protocols.schema import Schema
from clustering_protocols.sizing import Extent, Needs
from clustering_protocols.suitability import Method
from clustering_protocols.terms import Audience, Layout

from .analyst import AnalystRole
from .party import Memory, PartyRole
from .session import P_co, Params, SessionContext
from .shown import Shown

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Record)
USUAL_FIGURES: Final = frozenset(
    {"inertia", "simplified_silhouette", "calinski_harabasz", "davies_bouldin"}
)


class Exchange(NamedTuple):
    """One kind of round: a task, and the contribution that answers it.

    Attributes
    ----------
    task, answer : type of Record
    least, most : int
        How often a party that takes part is asked in a session. A party refuses more,
        and goes on to nothing that follows with less.
    audience : Audience
        Within which group everybody is told the same task; no party answers one that
        another of the group was told otherwise.
    own : tuple of str
        Fields in which tasks of one group differ all the same.
    fields : bool
        Whether the party's role sees its table as the dictionary describes it; else the
        columns that are clustered.
    shows : bool
        Whether those outside may read what the session shows of rows once it is
        answered.
    """

    task: type[Record]
    answer: type[Record]
    least: int = 1
    most: int = 1
    audience: Audience = "all"
    own: tuple[str, ...] = ()
    fields: bool = False
    shows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two roles that talk to each other, and the closed list of their messages.

    Attributes
    ----------
    analyst, party : callable
        Return the roles; called where a role is played. A process that only reads
        messages never imports the mathematics behind the roles: see :func:`role`.
    exchanges : tuple of Exchange
        Every task of the stage, in the order in which they come: none comes after one
        that follows it.
    envelopes : tuple of type of Record
        What parties send each other.
    results : tuple of type of Record
        What a last stage hands out, to a slot or to the coordinator.
    results_to : Audience
        Within which group everybody gets the same result.
    each_run : bool
        Whether a session of several runs repeats the stage for each of them; else one
        stage serves all runs.
    run : int, optional
        To which of several runs the stage belongs; the engine says it.
    """

    name: str
    analyst: Callable[[], AnalystRole[Any, Any, Any]]
    party: Callable[[], PartyRole[Any, Any, Any, Any]]
    exchanges: tuple[Exchange, ...]
    envelopes: tuple[type[Record], ...] = ()
    results: tuple[type[Record], ...] = ()
    results_to: Audience = "slot"
    each_run: bool = False
    run: int | None = None

    @property
    def tasks(self) -> tuple[type[Record], ...]:
        """Return the kinds of task."""
        return tuple(exchange.task for exchange in self.exchanges)

    @property
    def records(self) -> tuple[type[Record], ...]:
        """Return every kind that this stage writes: sent, sealed, or kept as state."""
        sent = (record for e in self.exchanges for record in (e.task, e.answer))
        kinds = (*sent, *self.envelopes, self.analyst().state, *self.results)
        return tuple(dict.fromkeys(kinds))

    def answer_to(self, task: str) -> type[Record]:
        """Return the kind of the answer to a task's kind."""
        return self.exchange_of(task).answer

    def exchange_of(self, task: str) -> Exchange:
        """Return the exchange of a task's kind."""
        return next(e for e in self.exchanges if e.task.kind == task)


def role(package: str, name: str) -> Callable[[], Any]:
    """Return what makes a role, given as ``module.Class``, importing it when it is played.

    ``package`` is the ``__name__`` of the protocol's own, so that a copied folder finds
    its own roles.
    """

    def make() -> Any:
        module, _, made = name.partition(".")
        return getattr(import_module(f"{package}.{module}"), made)()

    return make


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example(Generic[P]):
    """Parameters, layout and made data on which a protocol shows what it does.

    The conformance suite runs every example of every protocol. ``missing`` is the share
    of rows that each party of a row group lacks, other ones than its peers. With
    ``dictionary`` and ``preparation``, one of each column group, X holds fields, NaN
    where there is no value. With ``evaluation`` its session has several runs, with
    ``release`` profiles.
    """

    params: P
    layout: Layout
    X: FloatArray = field(repr=False)
    missing: float = 0.0
    dictionary: Sequence[Schema] | None = None
    preparation: Sequence[Preparation] | None = None
    evaluation: Evaluation | None = None
    release: Release | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Generic[P_co]):
    """What a simulated session left: its context, summary and every party's memory."""

    session: SessionContext[P_co]
    summary: Record | None
    memories: Mapping[str, Memory] = field(repr=False)

    def summary_as(self, kind: type[R]) -> R | None:
        """Return the summary with its type; None where the session left none."""
        return None if self.summary is None else kind.narrow(self.summary)


class ClusteringProtocol(ABC, Generic[P]):
    """A protocol of the catalogue.

    Class attributes
    ----------------
    title, summary : str
    version : int
        Raised with any change that an older party would not understand.
    params : type of Params
    partitionings : tuple of str
        Of ``horizontal``, ``vertical``, ``mixed``.
    learns : mapping of str to str
        Who learns what, a sentence each.
    risks : mapping of str to str
        The closed list of risk codes, without the protocol's name, a sentence each.
    later_risks : frozenset of str
        Codes of ``risks`` that terms of this version lacked before: those stay readable.
    choices : mapping of str to str
        What a party may decide alone, a sentence each.
    limits : frozenset of str
        Those choices that say only whether an answer may leave, never what is in it.
    methods : tuple of Method
        What it is good for: empty for a protocol that nobody should be advised to use.
    apart : str
        What keeps clusters from coinciding.
    """

    title: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[int] = 1
    params: type[P]
    partitionings: ClassVar[tuple[str, ...]]
    learns: ClassVar[Mapping[str, str]]
    risks: ClassVar[Mapping[str, str]]
    later_risks: ClassVar[frozenset[str]] = frozenset()
    choices: ClassVar[Mapping[str, str]] = {}
    limits: ClassVar[frozenset[str]] = frozenset()
    methods: ClassVar[tuple[Method, ...]] = ()
    apart: ClassVar[str] = "Ask for fewer clusters."

    @abstractmethod
    def check(self, params: P, layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless parameters and layout fit."""

    def check_opening(self, params: P, layout: Layout) -> None:
        """Refuse what terms could say once and no new session may.

        Called where a session is opened or joined, not where terms are read: what an
        earlier release wrote stays readable. Raises :class:`InvalidParameters`.
        """

    def check_roster(self, session: SessionContext[P]) -> None:
        """Refuse rows and features that do not fit, before anybody works.

        The engine calls it before the first round, and again whenever the rows that take
        part have changed. Raises :class:`ProtocolFailed` with the numbers that would fit.
        """

    def quorum(self, params: P, layout: Layout) -> int:
        """Return how many parties a session needs until its end: all, unless it says so.

        As many sign what everybody was told before anybody gets a result.
        """
        del params
        return len(layout.slots)

    def check_runs(self, runs: Sequence[P], layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless a session may have these runs."""
        for params in runs:
            self.check(params, layout)

    def figures(self, params: P, layout: Layout) -> frozenset[str]:
        """Return the names of the figures by which runs can be compared."""
        del params, layout
        return USUAL_FIGURES

    def needs(self, params: P, extent: Extent) -> Needs | None:
        """Return what a session of one run takes; None where the protocol does not say."""
        del params, extent
        return None

    def updates_that_fit(
        self, params: Sequence[P], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates a party of so many rows answers in any case.

        Its audit (``sums_limit``) lets them through by default, whatever the clusters.
        None where it audits no sums.

        Parameters
        ----------
        params : sequence of Params
            Of each run.
        """
        del params, layout, n_rows
        return None

    def most_rows(self, params: P, n_features: int) -> int | None:
        """Return the most rows of all parties that fit the parameters; None: any."""
        del params, n_features
        return None

    def beyond(self, params: P) -> str:
        """Return what to do with more rows than fit, as a sentence."""
        del params
        return ""

    @abstractmethod
    def risks_of(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""

    @abstractmethod
    def shows(self, params: P, layout: Layout) -> frozenset[Shown]:
        """Return what a session shows of rows, and to whom."""

    def cautions(
        self, params: P, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Return what spoils the result of such a session, as sentences; usually none.

        Parameters
        ----------
        widths : sequence of int
            Columns of each column group.
        """
        del params, layout, widths
        return ()

    def cautions_of(
        self, params: P, layout: Layout, sizes: Sequence[int]
    ) -> Sequence[str]:
        """Return what the rows of each cluster show of a result, as sentences."""
        del params, layout, sizes
        return ()

    def risks_of_runs(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the risk codes that several runs bring beside those of one."""
        del params, layout
        return ()

    @abstractmethod
    def stages(self, params: P, layout: Layout) -> Sequence[Stage]:
        """Return the chain of stages."""

    @abstractmethod
    def examples(self) -> Sequence[Example[P]]:
        """Return small examples that together use what the parameters offer."""

    @abstractmethod
    def pooled(self, params: P, X: FloatArray, trace: Trace[P] | None) -> IntArray:
        """Return the labels of the same clustering on pooled data.

        Parameters
        ----------
        X : float64 array of shape (n, m)
            All rows, in the order in which they travelled, columns by column group.
        trace : Trace, optional
            What a simulated session left, from which equal starts are taken.
        """
