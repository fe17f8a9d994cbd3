"""A protocol of the catalogue: its parameters, stages, risks and examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.records import Record
from clustering_protocols.suitability import Method
from clustering_protocols.terms import Layout

from .analyst import AnalystRole
from .party import Memory, PartyRole
from .session import Params, SessionContext

P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two roles that talk to each other, and the closed list of their records.

    ``analyst`` and ``party`` return the roles, and are called where a role is played:
    a process that only reads records never imports the mathematics behind the roles.
    """

    name: str
    analyst: Callable[[], AnalystRole]
    party: Callable[[], PartyRole]
    records: tuple[type[Record], ...]

    def record(self, kind: Any) -> type[Record] | None:
        """Return the class of a kind, or None where this stage has no such record."""
        return next((record for record in self.records if record.kind == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example(Generic[P]):
    """Parameters, layout and made data on which a protocol shows what it does.

    The conformance suite runs every example of every protocol. ``missing`` is the share
    of rows that each party of a row group lacks, other ones than its peers.
    """

    params: P
    layout: Layout
    X: FloatArray = field(repr=False)
    missing: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a simulated session left: its plan, summary and every party's memory."""

    session: SessionContext
    summary: Record | None
    memories: Mapping[str, Memory] = field(repr=False)


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
    choices : mapping of str to str
        What a party may decide alone, a sentence each.
    ways : tuple of Way
        What it is good for: empty for a protocol that nobody should be advised to use.
    """

    title: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[int] = 1
    params: type[P]
    partitionings: ClassVar[tuple[str, ...]]
    learns: ClassVar[Mapping[str, str]]
    risks: ClassVar[Mapping[str, str]]
    choices: ClassVar[Mapping[str, str]] = {}
    methods: ClassVar[tuple[Method, ...]] = ()

    @abstractmethod
    def check(self, params: P, layout: Layout) -> None:
        """Raise :class:`InvalidParameters` unless parameters and layout fit."""

    @abstractmethod
    def risks_of(self, params: P, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""

    @abstractmethod
    def stages(self, params: P, layout: Layout) -> Sequence[Stage]:
        """Return the chain of stages."""

    @abstractmethod
    def examples(self) -> Sequence[Example[P]]:
        """Return small examples that together use what the parameters offer."""

    @abstractmethod
    def pooled(self, params: P, X: FloatArray, trace: Trace | None) -> IntArray:
        """Return the labels of the same clustering on pooled data.

        Parameters
        ----------
        X : float64 array of shape (n, m)
            All rows, in the order in which they travelled, columns by column group.
        trace : Trace, optional
            What a simulated session left, from which equal starts are taken.
        """
