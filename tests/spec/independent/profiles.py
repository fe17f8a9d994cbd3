"""Section 11: profiles, what the clusters are like, by sums over a column group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import records, runs
from .derivations import Refusal
from .kinds import Kind, Record, Rule
from .order import Exchange, Memory, Reply, Role, Stage, View
from .profile_sums import Totals, count_own, fits
from .session import Session
from .sums import Sum
from .told_profiles import agree, read, write

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labelled = Callable[[View, Record, int], Ints]
NAME: Final = "profiles"
KINDS: Final[Mapping[str, Kind]] = {
    "take-labels": Kind(
        {"figures": "list of object", "chosen": "integer"},
        {"result": Rule("|u1", ("result",))},
    ),
    "add-profile": Kind(
        {"sum": "integer", "n_clusters": "integer"}, {"total": Rule("<u8", ("before",))}
    ),
    "tell-profile": Kind(arrays={"total": Rule("<u8", ("before",))}),
    "read-profiles": Kind(arrays={"text": Rule("|u1", ("characters",))}),
}
_SUMS: Final = 6
_MOST_CLUSTERS: Final = 10_000
_LEAST: Final = 3
_LIFT: Final = 2.0**20


def stage(session: Session, results_to: str, labelled: Labelled) -> list[Stage]:
    """Section 11, profiles: the stage, where the terms release them.

    labelled: labels of a result, given its run.
    """
    release = session.terms.get("release")
    if release is None:
        return []
    told = release["profiles"] == "everybody"
    exchanges = [
        Exchange("take-labels", "labels-taken", audience=results_to),
        Exchange("add-profile", "profile-share", _SUMS, _SUMS, "column"),
        Exchange("tell-profile", "profile-told", audience="column"),
    ]
    if told:
        exchanges.append(Exchange("read-profiles", "profiles-read"))
    return [Stage(NAME, tuple(exchanges), _Member(labelled))]


def check_assigned(memory: Memory, content_digest: str) -> None:
    """Section 11, profiles: the result is the one of which labels were taken."""
    taken = memory.get("assigned")
    if taken is not None and taken["result"] != content_digest:
        raise Refusal("protocol-failed")


@dataclass(frozen=True)
class _Member(Role):
    """Section 11, profiles: a party."""

    labelled: Labelled

    def reply(self, view: View, task: Record) -> Reply:
        """Section 11, profiles: answer a task."""
        if task.kind == "take-labels":
            return self._take(view, task)
        if task.kind == "add-profile":
            return self._add(view, task)
        if task.kind == "tell-profile":
            return self._tell(view, task)
        return self._check(view, task)

    def _take(self, view: View, task: Record) -> Reply:
        """Section 11, profiles, labels: keep those of the chosen run."""
        chosen = task.values["chosen"]
        runs.check_choice(view, task.values["figures"], chosen)
        content = task.arrays["result"].tobytes()
        header, arrays = records.read(content)
        if set(header) != {"kind", "version", "values"}:
            raise Refusal("malformed")
        result = Record(header["kind"], header["values"], arrays, header["version"])
        labels = self.labelled(view, result, chosen)
        sizes = arrays.get("cluster_sizes")
        known = view.session.runs[chosen] if sizes is None else len(sizes)
        k = max(known, 1 + int(labels.max(initial=0)))
        if k > _MOST_CLUSTERS:
            raise Refusal("protocol-failed")
        digest = sha256(content).hexdigest()
        kept = {"labels": labels, "chosen": chosen, "result": digest}
        return Reply(
            Record("labels-taken", {"n_clusters": k}), remember={"assigned": kept}
        )

    def _add(self, view: View, task: Record) -> Reply:
        """Section 11, profiles, sums: a share of the next."""
        which, k = task.values["sum"], task.values["n_clusters"]
        known = view.memory.get("profiling", {"sum": 0, "k": k, "sums": ()})
        session, labels = view.session, view.recall("assigned")["labels"]
        late = which != known["sum"] + 1 or k != known["k"]
        if late or not labels.max(initial=-1) < k <= session.n_rows(session.slots):
            raise Refusal("protocol-failed")
        known = self._learn(view, known, task.arrays["total"])
        totals = self._totals(view, known)
        own = count_own(totals, session.fields, labels)
        alone = _is_alone(view)
        after = {**known, "sum": which, "transcript": view.transcript}
        words = np.zeros(0, np.uint64)
        if alone:
            after["own"] = own
        else:
            words = self._sum(view, which).hide(own.view(np.uint64))
        share = Record("profile-share", arrays={"words": words})
        return Reply(share, remember={"profiling": after})

    def _learn(self, view: View, known: Memory, total: NDArray[np.uint64]) -> Memory:
        """Section 11, profiles, sums: what is known with the total of the sum before."""
        which = known["sum"]
        totals = self._totals(view, known)
        due = 0 if not which or _is_alone(view) else 1 + totals.size(which)
        if total.size != due:
            raise Refusal("invalid-array")
        if not which:
            return known
        if _is_alone(view):
            words = known["own"]
        else:
            largest: Any = 2.0**62
            if which in {3, 5}:
                limits = totals.bounds(which) * totals.units(which)
                largest = (limits + _LIFT).reshape(-1)
            words = self._sum(view, which).read(total, known["transcript"], largest)
            if not fits(totals, words):
                raise Refusal("protocol-failed")
        return {**known, "sums": (*known["sums"], words)}

    @staticmethod
    def _sum(view: View, which: int) -> Sum:
        """Section 10: a sum of profiles."""
        return Sum(view, "column", f"profile-{which}")

    @staticmethod
    def _totals(view: View, known: Memory) -> Totals:
        """Section 11, profiles, sums: what is known."""
        session, group = view.session, view.group("column")
        return Totals(
            fields=session.described,
            k=known["k"],
            n_rows=session.n_rows(group),
            n_members=len(group),
            smallest=session.terms["release"].get("min_cluster_rows", 10),
            sums=known["sums"],
        )

    def _tell(self, view: View, task: Record) -> Reply:
        """Section 11, profiles, telling: the leader's, rounded."""
        known = view.recall("profiling")
        if known["sum"] != _SUMS:
            raise Refusal("protocol-failed")
        known = self._learn(view, known, task.arrays["total"])
        column = view.session.column
        text = write(self._totals(view, known), column)
        everybody = view.session.terms["release"]["profiles"] == "everybody"
        tells = everybody and view.leads("column") and not _is_alone(view)
        told = np.frombuffer(text.encode() if tells else b"", np.uint8)
        return Reply(
            Record("profile-told", arrays={"text": told}), remember={"profile": text}
        )

    @staticmethod
    def _check(view: View, task: Record) -> Reply:
        """Section 11, profiles, reading: the own one is what was added up."""
        told, session = read(task.arrays["text"].tobytes()), view.session
        groups = session.groups("column")
        adding = [n for n, group in enumerate(groups) if len(group) >= _LEAST]
        if [each["column"] for each in told] != adding:
            raise Refusal("protocol-failed")
        if not _is_alone(view):
            (own,) = read(view.recall("profile").encode())
            if not agree(own, told[adding.index(session.column)]):
                raise Refusal("protocol-failed")
        return Reply(Record("profiles-read"))


def _is_alone(view: View) -> bool:
    """Section 11, profiles: whether a column group is too small to add up."""
    return len(view.group("column")) < _LEAST
