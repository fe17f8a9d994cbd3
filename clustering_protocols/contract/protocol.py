"""The interface of a protocol: its parameters, stages, risks and examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
    runtime_checkable,
)

from clustering_protocols.common.suitability import Method
from clustering_protocols.contract.sizing import Sizes
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.terms.session_risks import Risk
from clustering_protocols.terms.terms import Audience, Layout

from .analyst import AnalystRole, Ask, Finish
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

    least, most: the smallest and the largest number of these tasks that a party answers
        in a session. The party refuses any task beyond the largest number. Before it
        has answered the smallest number, it refuses the tasks of later exchanges.
    audience: the group within which all members receive the same task; a party refuses
        a task that differs.
    own: the names of the task's fields that may differ between members of the group.
    fields: whether the party's role sees its table as the dictionary describes it, and
        not only the columns that are clustered.
    slots: returns the slots that get the task under the terms; None means all slots.
    """

    task: type[Record]
    answer: type[Record]
    least: int = 1
    most: int = 1
    audience: Audience = "all"
    own: tuple[str, ...] = ()
    fields: bool = False
    slots: Callable[[SessionContext[Any]], Collection[str]] | None = None


def role_factories(package: str) -> Callable[[str], Callable[[], Any]]:
    """Return a function that turns ``"module:Class"`` of a package into a factory.

    The module is imported when the role is created, so a process that only reads
    messages never imports the mathematics.
    """
    return lambda path: partial(_create_role, package, path)


def _create_role(package: str, path: str) -> Any:
    module, _, name = path.partition(":")
    return attrgetter(name)(import_module(f"{package}.{module}"))()


Check = Callable[[SessionContext[Any], Mapping[str, Any]], None]


@dataclass(frozen=True)
class Relay(AnalystRole[Params, Record]):
    """An analyst role that sends a fixed sequence of tasks, none of which has fields.

    exchanges: the exchanges of the stage, each of which takes one round, and has an
        answer of its own kind.
    check: called with the session and the answers of a round; raises an error if the
        answers contradict each other.
    """

    exchanges: Sequence[Exchange]
    check: Check | None = None

    def start(self, session: SessionContext) -> Ask:
        """Send the first task."""
        return self._ask(session, self.exchanges[0])

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Send the task that follows the one just answered, or finish the stage."""
        if self.check is not None:
            self.check(session, contributions)
        answer = type(next(iter(contributions.values())))
        answered = [exchange.answer for exchange in self.exchanges].index(answer)
        if answered + 1 == len(self.exchanges):
            return Finish()
        return self._ask(session, self.exchanges[answered + 1])

    def _ask(self, session: SessionContext, exchange: Exchange) -> Ask:
        slots = session.slots if exchange.slots is None else exchange.slots(session)
        return Ask(tasks=dict.fromkeys(slots, exchange.task()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two roles that exchange messages, and the closed list of these messages.

    analyst, party: functions that return the roles; see :func:`role_factories`.
    exchanges: the exchanges in order; once one has begun, earlier ones do not recur.
    envelopes: the kinds of records that parties send each other in envelopes.
    results: the kinds of records that a last stage gives to a slot or the coordinator.
    results_to: the group within which everybody gets the same result.
    each_run: whether a session of several runs repeats the stage for each of them.
        Otherwise one stage serves all runs.
    run: the number of the run to which the stage belongs, if any; set by the engine.
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

    @classmethod
    def relaying(
        cls,
        *exchanges: Exchange,
        name: str,
        party: Callable[[], PartyRole[Any, Any, Any, Any]],
        envelopes: tuple[type[Record], ...] = (),
        check: Check | None = None,
    ) -> Stage:
        """Return a stage without results, whose analyst is a :class:`Relay`."""
        return cls(
            name=name,
            analyst=lambda: Relay(exchanges, check),
            party=party,
            exchanges=exchanges,
            envelopes=envelopes,
        )

    @property
    def tasks(self) -> tuple[type[Record], ...]:
        """Return the kinds of tasks, in the order of the exchanges."""
        return tuple(exchange.task for exchange in self.exchanges)

    @property
    def records(self) -> tuple[type[Record], ...]:
        """Return the kinds of all messages, envelopes, states and results."""
        messages = (record for e in self.exchanges for record in (e.task, e.answer))
        kinds = (*messages, *self.envelopes, self.analyst().state, *self.results)
        return tuple(dict.fromkeys(kinds))

    def exchange_of(self, task: str) -> Exchange:
        """Return the exchange to which this kind of task belongs."""
        return next(e for e in self.exchanges if e.task.kind == task)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example(Generic[P]):
    """Parameters, a layout and synthetic data on which the conformance suite runs.

    X: float64 (n, m); with a dictionary, X holds its fields, and NaN is a missing
        value.
    missing: the fraction of a row group's rows that each of its parties lacks. The
        missing rows are drawn at random for each party.
    sections: further sections of the request, by name.
    """

    params: P
    layout: Layout
    X: FloatArray = field(repr=False)
    missing: float = 0.0
    sections: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Generic[P_co]):
    """The traces of a simulated session: context, summary and every party's memory."""

    session: SessionContext[P_co]
    summary: Record | None
    memories: Mapping[str, Memory] = field(repr=False)

    def summary_as(self, kind: type[R]) -> R | None:
        """Return the summary as a record of this kind, or None without a summary."""
        return None if self.summary is None else kind.narrow(self.summary)


class PooledReference(Protocol[P]):
    """The examples of a protocol and its method on pooled rows; often a module."""

    def examples(self) -> Sequence[Example[P]]:
        """Return small examples that together cover all choices of the parameters."""

    def cluster_pooled(
        self, params: P, X: FloatArray, trace: Trace[P] | None
    ) -> IntArray:
        """Return the labels that the same method computes on pooled data.

        X: float64 (n, m); all rows in the order in which they were sent, columns by
            column group.
        trace: the trace of a simulated session, from which the method takes the initial
            centres of that session.
        """


@runtime_checkable
class MinimisingReference(PooledReference[P], Protocol[P]):
    """The reference of a method that minimises an objective."""

    def objectives(
        self,
        params: P,
        X: FloatArray,
        clustered: tuple[IntArray, FloatArray | None],
        trace: Trace[P],
    ) -> Objectives | None:
        """Return the objective's values for a session and for pooled runs.

        The result is None if the method minimises no objective with these parameters,
        or needs no initial centres.

        X: as in :meth:`cluster_pooled`.
        clustered: labels (n,) of the session and, if it has any, memberships (n, k).
        """


class ClusteringProtocol(ABC, Generic[P]):
    """Base class of the protocols in the catalogue.

    version: a number, raised with every change that older parties do not understand.
    partitionings: a selection of ``horizontal``, ``vertical`` and ``mixed``.
    learns: what each reader learns, in one sentence.
    risks: the closed list of risks, by code without the protocol's name.
    choices: settings that each party makes alone, with a sentence about each.
    limits: the names of choices that decide only whether an answer may be sent, and do
        not change its content.
    methods: recommended methods; empty if the protocol is never recommended.
    apart: advice on what to do if clusters coincide.
    rows_limit_updates: whether a session over few rows may be limited to fewer updates
        than ``max_iter``.
    in_simulations: parameters whose default in a simulation differs from that in a
        session, because a simulation does not need a costly protection.
    paper: the citation of the method; empty if there is no paper.
    for_tests: whether the protocol exists only for tests; commands and the desk hide
        it.
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
    rows_limit_updates: ClassVar[bool] = False
    in_simulations: ClassVar[Mapping[str, Any]] = {}
    paper: ClassVar[str] = ""
    for_tests: ClassVar[bool] = False

    @abstractmethod
    def check_params(self, params: P, layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless the parameters fit the layout."""

    def check_opening(self, params: P, layout: Layout) -> None:
        """Raise :class:`InvalidParameters` for values that only older terms may have.

        It is called when a session is opened or joined, and not when terms are read, so
        that terms of earlier releases stay readable.
        """

    def may_label_new_rows(self, params: P) -> bool:
        """Return whether parties of a session may label new rows later."""
        return False

    def check_roster(self, session: SessionContext[P]) -> None:
        """Raise :class:`ProtocolFailed` for unsupported numbers of rows or features.

        The engine calls it before the first round, and again whenever the set of
        participating rows has changed. The message contains numbers that are supported.
        """

    def quorum(self, params: P, layout: Layout) -> int:
        """Return how many parties must stay to the end and sign; by default all."""
        return len(layout.slots)

    def check_runs(self, runs: Sequence[P], layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless a session may have these runs."""
        for params in runs:
            self.check_params(params, layout)

    def figures(self, params: P, layout: Layout) -> frozenset[str]:
        """Return the names of the figures by which runs can be compared."""
        return USUAL_FIGURES

    def numbers_clusters(self, params: P) -> bool:
        """Return whether the terms, and not the engine, number the clusters.

        If not, the engine sorts clusters by the ``sizes`` or ``cluster_sizes`` of the
        summary. In summary and results it permutes these arrays and ``centroids`` along
        the first axis and ``memberships`` along the second, and renumbers ``labels``. A
        protocol with other arrays by cluster must return True.
        """
        return False

    def sizing(self) -> Sizes[P]:
        """Return the estimates of a session's limits and costs."""
        return Sizes()

    @abstractmethod
    def risks_of(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the codes of the risks that follow from parameters and layout.

        They are keys of ``risks``, or begin with ``house.`` if the risk is not specific
        to this protocol.
        """

    def readers(self, params: P, layout: Layout) -> Mapping[str, str]:
        """Return what each reader learns in one session; by default ``learns``."""
        return self.learns

    def summarise(self, params: P, layout: Layout) -> str:
        """Return a summary of one session; by default ``summary``."""
        return self.summary

    def personal_data(self, layout: Layout) -> str:
        """Return a sentence that says which data about individuals are sent."""
        return "The number of rows is sent, and nothing about any single person."

    @abstractmethod
    def disclosures(self, params: P, layout: Layout) -> frozenset[Disclosure]:
        """Return the session's disclosures about rows, with their readers."""

    def cautions(
        self, params: P, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Return warnings about a session's future result; empty by default.

        widths: the number of columns of each column group.
        """
        return ()

    def cautions_of(
        self, params: P, layout: Layout, sizes: Sequence[int]
    ) -> Sequence[str]:
        """Return warnings about a result that follow from the size of each cluster."""
        return ()

    def risks_of_runs(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the additional risk codes of a session with several runs."""
        return ()

    @abstractmethod
    def stages(self, params: P, layout: Layout) -> Sequence[Stage]:
        """Return the stages of a session, in order."""

    def reference(self) -> PooledReference[P]:
        """Return the examples and the pooled method.

        By default this is the module ``reference`` next to the module of the
        parameters.
        """
        package = self.params.__module__.rpartition(".")[0]
        reference: Any = import_module(f"{package}.reference")
        return cast("PooledReference[P]", reference)
