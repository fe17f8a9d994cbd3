"""Section 11: secrets, alignment, statistics through a leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import intersection, linkage
from .common import Comparison
from .derivations import Refusal, Stream, group_key, group_mark
from .ids import normal_forms
from .kinds import Kind, Record, Rule
from .order import Exchange, Memory, Reply, Role, Stage, View
from .session import Session

Floats = NDArray[np.float64]
_MEASURES: Final = Kind(
    {"n_rows": "integer"},
    {
        "mean": Rule("<f8", ("moments",)),
        "deviations": Rule("<f8", ("moments",), 0),
        "minimum": Rule("<f8", ("ranges",)),
        "maximum": Rule("<f8", ("ranges",)),
    },
)
KINDS: Final[Mapping[str, Kind]] = {
    "share-secrets": Kind(),
    "secrets-shared": Kind(),
    "group-secret": Kind({"scope": "string", "secret": "string"}),
    "compare-digests": Kind(),
    "digests": Kind({"rows": "string", "columns": "string"}),
    **intersection.KINDS,
    **linkage.KINDS,
    "measure": Kind(),
    "measured": Kind(),
    "pool": Kind(),
    "pooled": Kind(),
    "moments": _MEASURES,
    "pooled-moments": _MEASURES,
}
_LARGEST: Final = 1e100
_SCOPES: Final = ("row", "column")


def group_stream(view: View, scope: str, purpose: str) -> Stream:
    """Section 9: the stream of a group for a purpose."""
    secret = bytes.fromhex(view.recall(f"secret/{scope}"))
    return Stream(group_key(secret, view.session.agreement, purpose))


def leaders(view: View) -> list[str]:
    """Section 11: the leaders of a party's groups, but itself."""
    found = dict.fromkeys(view.group(scope)[0] for scope in _SCOPES)
    return [slot for slot in found if slot != view.session.slot]


def to_members(view: View, record: Any) -> list[tuple[str, Record]]:
    """Section 11: for each group that the party leads, a record for its members."""
    return [
        (slot, record(scope))
        for scope in _SCOPES
        if view.leads(scope)
        for slot in view.group(scope)[1:]
    ]


class Secrets(Role):
    """Section 11, secrets."""

    def reply(self, view: View, _task: Record) -> Reply:
        """Section 11, secrets: draw and seal."""
        own = {}
        for scope in filter(view.leads, _SCOPES):
            purpose = f"secret/{scope}"
            stream = view.session.draw(view.stage, purpose, view.transcript)
            own[purpose] = stream.words(4).tobytes().hex()
        sealed = to_members(
            view,
            lambda scope: Record(
                "group-secret", {"scope": scope, "secret": own[f"secret/{scope}"]}
            ),
        )
        return Reply(Record("secrets-shared"), sealed, leaders(view), dict(own))

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 11, secrets: keep those of leaders."""
        kept = {}
        for sender, record in came:
            scope = record.values["scope"]
            if scope not in _SCOPES or view.group(scope)[0] != sender:
                raise Refusal("envelope-refused")
            kept[f"secret/{scope}"] = record.values["secret"]
        return kept


class Alignment(Comparison):
    """Section 11, alignment."""

    def reply(self, view: View, _task: Record) -> Reply:
        """Section 11, alignment: digests of what stands for rows."""
        return self.compare(view, None)

    def compare(self, view: View, names: Sequence[str] | None) -> Reply:
        """Section 11, alignment: digests, and the row order."""
        session = view.session
        named = self._names(view) if names is None else names
        own = Record(
            "digests",
            {
                "rows": self._digest(view, "row", named),
                "columns": self._digest(view, "column", session.columns),
            },
        )
        order = group_stream(view, "row", "row-order").permutation(len(session.rows))
        remember = {"digests": own.values, "order": order}
        return Reply(own, to_members(view, lambda _: own), leaders(view), remember)

    @staticmethod
    def _names(view: View) -> list[str]:
        """Section 11, alignment: what stands for rows."""
        session = view.session
        if len(view.group("row")) == 1:
            return []
        if session.ids is None:
            return [f"rows:{len(session.rows)}"]
        said = session.terms["protocol"].get("params", {}).get("alignment", {})
        return normal_forms(session.ids, said)

    @staticmethod
    def _digest(view: View, scope: str, names: Sequence[str]) -> str:
        """Section 11, alignment: a digest."""
        secret = bytes.fromhex(view.recall(f"secret/{scope}"))
        purpose = f"alignment/{scope}"
        return group_mark(secret, view.session.agreement, purpose, names)

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 11, alignment: a leader holds the same."""
        own = view.recall("digests")
        for sender, record in came:
            for scope in _SCOPES:
                name = f"{scope}s"
                leads = view.group(scope)[0] == sender
                if leads and record.values[name] != own[name]:
                    raise Refusal("protocol-failed")
        return {}


@dataclass(frozen=True)
class Moments:
    """Section 11: mean, squared deviations and ranges of columns."""

    n: int
    mean: Floats
    deviations: Floats
    minimum: Floats
    maximum: Floats

    @property
    def deviation(self) -> Floats:
        """Section 11: the standard deviation."""
        return np.sqrt(self.deviations / self.n)

    @classmethod
    def of(cls, record: Record) -> Moments:
        """Section 11, statistics: from a record."""
        return cls(record.values["n_rows"], **record.arrays)

    def record(self, kind: str) -> Record:
        """Section 11, statistics: as a record."""
        arrays = {name: getattr(self, name) for name in _MEASURES.arrays}
        return Record(kind, {"n_rows": self.n}, arrays)


def measure(rows: Floats, *, moments: bool, ranges: bool) -> Moments:
    """Section 11, statistics: own measures."""
    low, high, none = rows.min(axis=0), rows.max(axis=0), np.empty(0)
    mean = np.where(low == high, low, rows.sum(axis=0) / len(rows))
    deviations = np.square(rows - mean).sum(axis=0)
    return Moments(
        n=len(rows),
        mean=mean if moments else none,
        deviations=deviations if moments else none,
        minimum=low if ranges else none,
        maximum=high if ranges else none,
    )


def pool(parts: Sequence[Moments]) -> Moments:
    """Section 11, statistics: pooled measures."""
    counts = np.array([part.n for part in parts], np.float64)[:, None]
    means = np.array([part.mean for part in parts])
    same = (means == means[0]).all(axis=0)
    mean = np.where(same, means[0], (counts * means).sum(axis=0) / counts.sum())
    within = np.array([part.deviations for part in parts]).sum(axis=0)
    between = (counts * np.square(means - mean)).sum(axis=0)
    return Moments(
        n=int(counts.sum()),
        mean=mean,
        deviations=within + between,
        minimum=np.array([part.minimum for part in parts]).min(axis=0),
        maximum=np.array([part.maximum for part in parts]).max(axis=0),
    )


@dataclass(frozen=True)
class Statistics(Role):
    """Section 11, statistics."""

    moments: bool
    ranges: bool

    def reply(self, view: View, task: Record) -> Reply:
        """Section 11, statistics: measure and pool."""
        session, (leader, *others) = view.session, view.group("column")
        if task.kind == "measure":
            own = measure(session.rows, moments=self.moments, ranges=self.ranges)
            remember: Memory = {"own-moments": own}
            if session.slot != leader:
                sealed = [(leader, own.record("moments"))]
                return Reply(Record("measured"), sealed, remember=remember)
            if not others:
                remember["moments"] = pool([own])
            return Reply(Record("measured"), remember=remember)
        if session.slot != leader:
            return Reply(Record("pooled"))
        pooled = view.recall("moments").record("pooled-moments")
        return Reply(Record("pooled"), [(slot, pooled) for slot in others])

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 11, statistics: pool, or keep what was pooled."""
        leader, *others = view.group("column")
        width = len(view.session.columns)
        for _, record in came:
            sizes = [record.arrays[n].size for n in ("mean", "minimum")]
            large = any((abs(a) > _LARGEST).any() for a in record.arrays.values())
            if large or sizes != [width * self.moments, width * self.ranges]:
                raise Refusal("invalid-array")
        if view.session.slot != leader:
            if [sender for sender, _ in came] != [leader]:
                raise Refusal("envelope-refused")
            return {"moments": Moments.of(came[0][1])}
        parts = {sender: Moments.of(record) for sender, record in came}
        if set(parts) != set(others):
            raise Refusal("protocol-failed")
        own = view.recall("own-moments")
        return {"moments": pool([own, *(parts[slot] for slot in others)])}


def secrets() -> Stage:
    """Section 11, secrets: the stage."""
    exchange = Exchange("share-secrets", "secrets-shared")
    return Stage("secrets", (exchange,), Secrets(), frozenset({"group-secret"}))


def alignment(session: Session) -> Stage:
    """Section 11, alignment or intersection: the stage."""
    said = session.terms["protocol"].get("params", {}).get("alignment", {})
    if said.get("match_keys"):
        return linkage.linkage(session, Alignment())
    if said.get("method") == "ecdh":
        return intersection.intersection(session, Alignment())
    exchange = Exchange("compare-digests", "digests")
    return Stage("alignment", (exchange,), Alignment(), frozenset({"digests"}))


def statistics(
    session: Session, *, moments: bool, ranges: bool, most: int | None = None
) -> Stage:
    """Section 11, statistics: the stage; most: of the parties of a group."""
    group = session.group("column")
    return Stage(
        name="statistics",
        exchanges=(Exchange("measure", "measured"), Exchange("pool", "pooled")),
        role=Statistics(moments=moments, ranges=ranges),
        envelopes=frozenset({"moments", "pooled-moments"}),
        asks_us=most is None or len(group) <= most,
    )
