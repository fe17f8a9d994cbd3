"""Section 12: dummy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from .derivations import Refusal
from .kinds import Kind, Record, Rule
from .order import Exchange, Memory, Reply, Role, Stage, View
from .session import Session

VERSION: Final = 2
ALIGNED: Final = False
RESULTS_TO: Final = "row"
RESULTS: Final = ("labels",)
KINDS: Final[Mapping[str, Kind]] = {
    "greet": Kind(),
    "greeted": Kind(),
    "word": Kind(arrays={"word": Rule("<u8", (1,))}),
    "count": Kind(),
    "counted": Kind(arrays={"positions": Rule("<i8", ("n",), 0)}),
    "confirm": Kind({"total": "integer"}),
    "confirmed": Kind({"total": "integer"}),
    "labels": Kind(arrays={"labels": Rule("<i8", ("n",), 0)}),
}
_KNOWN: Final = {"n_clusters", "void_attempts", "fail_at"}


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, dummy: its stages."""
    if set(session.terms["protocol"].get("params", {})) - _KNOWN:
        raise Refusal("version-mismatch")
    words = frozenset({"word"})
    count, confirm = Exchange("count", "counted"), Exchange("confirm", "confirmed")
    return (
        Stage("greeting", (Exchange("greet", "greeted"),), _Greeter(), words),
        Stage("count", (count, confirm), _Counter(), words),
    )


class _Greeter(Role):
    """Section 12, dummy: a word to the next slot."""

    def reply(self, view: View, _task: Record) -> Reply:
        """Section 12, dummy: greet."""
        session, slots = view.session, view.session.slots
        word = session.draw(view.stage, "word", view.transcript).words(1)
        following = slots[(slots.index(session.slot) + 1) % len(slots)]
        sealed = [(following, Record("word", arrays={"word": word}))]
        return Reply(
            Record("greeted"), sealed if len(slots) > 1 else [], remember={"own": word}
        )

    def receive(self, _view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 12, dummy: keep the word and its sender."""
        return {"heard": came[-1]}


class _Counter(Role):
    """Section 12, dummy: counts rows, and confirms their number."""

    def reply(self, view: View, task: Record) -> Reply:
        """Section 12, dummy: count and confirm."""
        session = view.session
        if task.kind == "confirm":
            total = session.n_rows([group[0] for group in session.groups("row")])
            if task.values["total"] != total:
                raise Refusal("protocol-failed")
            return Reply(Record("confirmed", {"total": total}))
        positions = np.arange(len(session.rows), dtype=np.int64)
        counted = Record("counted", arrays={"positions": positions})
        if len(session.slots) == 1:
            return Reply(counted)
        return Reply(counted, [view.recall("heard")])

    def receive(self, view: View, came: list[tuple[str, Record]]) -> Memory:
        """Section 12, dummy: the word that comes back is the own one."""
        if any(record.arrays["word"][0] != view.recall("own")[0] for _, record in came):
            raise Refusal("protocol-failed")
        return {}


def conclude(_view: View, result: Record) -> Any:
    """Section 12, dummy: the labels."""
    return result.arrays["labels"]
