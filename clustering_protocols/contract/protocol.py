"""A protocol of the catalogue: its parameters, stages, risks and examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from clustering_protocols.common.suitability import Method
from clustering_protocols.contract.sizing import Sizes
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.terms.session_risks import Risk
from clustering_protocols.terms.terms import Audience, Layout

from .analyst import AnalystRole
from .disclosures import Disclosure
from .party import Memory, PartyRole
from .session import P_co, Params, SessionContext

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Record)
USUAL_FIGURES: Final = frozenset(
    {"inertia", "simplified_silhouette", "calinski_harabasz", "davies_bouldin"}
)


class Exchange(NamedTuple):
    """One kind of round: a task, and the contribution that answers it.

    least, most: how often a party that takes part is asked in a session. A party
        refuses more, and continues to nothing that follows with less.
    audience: the group within which all members receive the same task; a party refuses
        a task that differs.
    own: fields in which tasks of one group differ all the same.
    fields: whether the party's role sees its table as the dictionary describes it, and
        not only the columns that are clustered.
    shows: whether outsiders may read what the session discloses once it is answered.
    """

    task: type[Record]
    answer: type[Record]
    least: int = 1
    most: int = 1
    audience: Audience = "all"
    own: tuple[str, ...] = ()
    fields: bool = False
    shows: bool = False


def roles_of(package: str) -> Callable[[str], Callable[[], Any]]:
    """Return a function that makes a role's factory of ``"module:Class"`` in a package.

    The module is imported when the role is made: a process that only reads messages
    never imports the mathematics.
    """

    def make_factory(path: str) -> Callable[[], Any]:
        module, _, name = path.partition(":")

        def factory() -> Any:
            return attrgetter(name)(import_module(f"{package}.{module}"))()

        return factory

    return make_factory


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two roles that talk to each other, and the closed list of their messages.

    analyst, party: return the roles; see :func:`roles_of`.
    exchanges: every task of the stage, in the order in which they come: none comes
        after one that follows it.
    envelopes: what parties send each other.
    results: what a last stage hands out, to a slot or to the coordinator.
    results_to: within which group everybody gets the same result.
    each_run: whether a session of several runs repeats the stage for each of them; else
        one stage serves all runs.
    run: to which of several runs the stage belongs; the engine says it.
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
        messages = (record for e in self.exchanges for record in (e.task, e.answer))
        kinds = (*messages, *self.envelopes, self.analyst().state, *self.results)
        return tuple(dict.fromkeys(kinds))

    def exchange_of(self, task: str) -> Exchange:
        """Return the exchange of a task's kind."""
        return next(e for e in self.exchanges if e.task.kind == task)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example(Generic[P]):
    """Parameters, layout and made data on which a protocol shows what it does.

    The conformance suite runs every example of every protocol. ``missing`` is the share
    of rows that each party of a row group lacks, other ones than its peers. ``sections`` is
    what else its request says, by name: with a dictionary X holds fields, NaN where there
    is no value.
    """

    params: P
    layout: Layout
    X: FloatArray = field(repr=False)
    missing: float = 0.0
    sections: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Generic[P_co]):
    """What a simulated session left: its context, summary and every party's memory."""

    session: SessionContext[P_co]
    summary: Record | None
    memories: Mapping[str, Memory] = field(repr=False)

    def summary_as(self, kind: type[R]) -> R | None:
        """Return the summary with its type; None where the session left none."""
        return None if self.summary is None else kind.narrow(self.summary)


class PooledReference(Protocol[P]):
    """What sessions of a protocol are shown on and measured by; a module can be one."""

    def examples(self) -> Sequence[Example[P]]:
        """Return small examples that together use what the parameters offer."""

    def cluster_pooled(
        self, params: P, X: FloatArray, trace: Trace[P] | None
    ) -> IntArray:
        """Return the labels of the same clustering on pooled data.

        X: float64 (n, m); all rows, in the order in which they travelled, columns by
            column group.
        trace: what a simulated session left, from which equal starts are taken.
        """

    def objectives(
        self,
        params: P,
        X: FloatArray,
        clustered: tuple[IntArray, FloatArray | None],
        trace: Trace[P],
    ) -> Objectives | None:
        """Return what the clustering minimises, of a session and of pooled runs.

        None where it minimises nothing, or knows no starts.

        X: as of :meth:`cluster_pooled`.
        clustered: labels (n,) of the session and, if it has any, memberships (n, k).
        """


class ClusteringProtocol(ABC, Generic[P]):
    """A protocol of the catalogue.

    version: raised with any change that an older party would not understand.
    partitionings: of ``horizontal``, ``vertical``, ``mixed``.
    learns: who learns what, a sentence each.
    risks: the closed list of risk codes, without the protocol's name.
    choices: what a party may decide alone, a sentence each.
    limits: those choices that say only whether an answer may leave, never what is in
        it.
    methods: what it is good for: empty for a protocol that nobody should be advised to
        use.
    apart: what keeps clusters from coinciding.
    in_simulations: parameters of a simulation that names none: nobody is hidden from
        there, and what hides costs quality.
    paper: what to cite for the method; empty where there is no paper.
    for_tests: whether nobody is to be offered it.
    """

    title: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[int] = 1
    params: type[P]
    partitionings: ClassVar[tuple[str, ...]]
    learns: ClassVar[Mapping[str, str]]
    risks: ClassVar[Mapping[str, Risk]]
    choices: ClassVar[Mapping[str, str]] = {}
    limits: ClassVar[frozenset[str]] = frozenset()
    methods: ClassVar[tuple[Method, ...]] = ()
    apart: ClassVar[str] = "Ask for fewer clusters."
    in_simulations: ClassVar[Mapping[str, Any]] = {}
    paper: ClassVar[str] = ""
    for_tests: ClassVar[bool] = False

    @abstractmethod
    def check(self, params: P, layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless parameters and layout fit."""

    def check_opening(self, params: P, layout: Layout) -> None:
        """Refuse what terms could say once and no new session may.

        Called where a session is opened or joined, not where terms are read: what an
        earlier release wrote stays readable. Raises :class:`InvalidParameters`.
        """

    def may_label_new_rows(self, params: P) -> bool:
        """Return whether parties of such sessions may label rows that come later."""
        return False

    def check_roster(self, session: SessionContext[P]) -> None:
        """Refuse rows and features that do not fit, before anybody works.

        The engine calls it before the first round, and again whenever the rows that take
        part have changed. Raises :class:`ProtocolFailed` with the numbers that would fit.
        """

    def quorum(self, params: P, layout: Layout) -> int:
        """Return how many parties a session needs until its end: all, unless it says so.

        As many sign what everybody was told before anybody gets a result.
        """
        return len(layout.slots)

    def check_runs(self, runs: Sequence[P], layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless a session may have these runs."""
        for params in runs:
            self.check(params, layout)

    def figures(self, params: P, layout: Layout) -> frozenset[str]:
        """Return the names of the figures by which runs can be compared."""
        return USUAL_FIGURES

    def numbers_clusters(self, params: P) -> bool:
        """Return whether the terms number the clusters; else the engine does, by size."""
        return False

    def sizes(self) -> Sizes[P]:
        """Return what says how large a session may be, and what it takes."""
        return Sizes()

    @abstractmethod
    def risks_of(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring.

        Codes of ``risks``, or ``house.`` and one of any session.
        """

    def readers(self, params: P, layout: Layout) -> Mapping[str, str]:
        """Return who learns what in one session: ``learns``, where it fits all."""
        return self.learns

    def summarise(self, params: P, layout: Layout) -> str:
        """Return what happens in one session: ``summary``, where it fits all."""
        return self.summary

    def personal_data(self, layout: Layout) -> str:
        """Return what leaves of single people, in one sentence: no legal opinion."""
        return "The number of rows is sent, and nothing of a single person."

    @abstractmethod
    def shows(self, params: P, layout: Layout) -> frozenset[Disclosure]:
        """Return what a session shows of rows, and to whom."""

    def cautions(
        self, params: P, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Return what spoils the result of such a session, as sentences; usually none.

        widths: columns of each column group.
        """
        return ()

    def cautions_of(
        self, params: P, layout: Layout, sizes: Sequence[int]
    ) -> Sequence[str]:
        """Return what the rows of each cluster show of a result, as sentences."""
        return ()

    def risks_of_runs(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the risk codes that several runs bring beside those of one."""
        return ()

    @abstractmethod
    def stages(self, params: P, layout: Layout) -> Sequence[Stage]:
        """Return the chain of stages."""

    @abstractmethod
    def reference(self) -> PooledReference[P]:
        """Return what sessions are shown on and measured by: the module ``reference``."""
