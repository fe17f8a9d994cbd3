"""The analyst role: relays, compares tokens, and stops where too few are common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Params,
    Reopen,
    SessionContext,
    all_of,
)
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment.digests import Digests, compare
from clustering_protocols.shared_stages.alignment.overlap import check_overlap
from clustering_protocols.shared_stages.alignment.params import Alignment

from . import messages
from .groups import leaders_of, led_by
from .messages import IntersectionState

_Sorted = NDArray[np.bytes_]


@dataclass(frozen=True)
class IntersectionAnalyst(AnalystRole[Params, Record, IntersectionState]):
    """Four rounds."""

    alignment: Alignment

    state = IntersectionState

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask for blinded ids."""
        return Ask.everybody(session, messages.Blind(), state=_state("blind"))

    def step(
        self,
        session: SessionContext,
        state: IntersectionState,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Return the next round; at the end the numbers of rows that take part."""
        if state.asked == "blind":
            return _ask_evaluate(session, contributions)
        if state.asked == "evaluate":
            return _ask_unblind(session, state)
        if state.asked == "unblind":
            return self._ask_select(session, state, contributions)
        compare(session, all_of(Digests, contributions))
        return Finish(n_rows=state.n_rows)

    def _ask_select(
        self,
        session: SessionContext,
        now: IntersectionState,
        contributions: Mapping[str, Record],
    ) -> Ask:
        """Tell each slot which of its tokens all of its row group have."""
        tokens = _all_tokens(session, now, contributions)
        common = {slot: np.empty(0, np.uint8) for slot in session.slots}
        n_rows = dict(now.n_ids)
        for group in session.layout.row_groups:
            if len(group) > 1:
                shared = reduce(np.intersect1d, (tokens[slot] for slot in group))
                n_rows |= dict.fromkeys(group, len(shared))
                common |= {s: np.isin(tokens[s], shared).view(np.uint8) for s in group}
            least = self.alignment.minimum_overlap
            check_overlap(session, group, n_rows[group[0]], least)
        return Ask(
            state=_state("select", n_ids=now.n_ids, n_rows=n_rows),
            tasks={
                slot: messages.Select(common=common[slot], n_rows=n_rows)
                for slot in session.slots
            },
        )


def _state(asked: Any, **known: Any) -> IntersectionState:
    nothing: dict[str, Any] = {
        "n_ids": {},
        "n_rows": {},
        "tokens": np.empty((0, 32), np.uint8),
    }
    return IntersectionState(asked=asked, **(nothing | known))


def _ask_evaluate(session: SessionContext, contributions: Mapping[str, Record]) -> Ask:
    counted = all_of(messages.IdCount, contributions)
    leaders = led_by(session)
    for slot, told in counted.items():
        _check_count(session, slot, told, told.n_ids if slot in leaders else 0)
    return Ask(
        state=_state(
            "evaluate",
            n_ids={slot: told.n_ids for slot, told in counted.items()},
            tokens=np.concatenate([counted[slot].tokens for slot in leaders]),
        ),
        tasks=dict.fromkeys(leaders, messages.Evaluate()),
    )


def _check_count(
    session: SessionContext, slot: str, told: messages.IdCount, n_tokens: int
) -> None:
    if told.n_ids > session.member(slot).n_rows:
        raise InvalidArray(f"{slot!r} has more ids than the rows it joined with.")
    if len(told.tokens) != n_tokens:
        raise InvalidArray(f"{slot!r} sent {len(told.tokens)} tokens, not {n_tokens}.")


def _ask_unblind(session: SessionContext, now: IntersectionState) -> Ask:
    members = leaders_of(session)
    return Ask(
        state=_state("unblind", n_ids=now.n_ids, tokens=now.tokens),
        tasks=dict.fromkeys(members, messages.Unblind()),
        dims={slot: {"t": now.n_ids[slot]} for slot in members},
    )


def _all_tokens(
    session: SessionContext, now: IntersectionState, contributions: Mapping[str, Record]
) -> dict[str, _Sorted]:
    """Return the sorted tokens of each slot that has any."""
    ends = np.cumsum([now.n_ids[slot] for slot in led_by(session)])
    per_leader = np.split(now.tokens, ends[:-1])
    found = dict(zip(led_by(session), per_leader, strict=True))
    shown = all_of(messages.PartyTokens, contributions)
    found |= {slot: each.tokens for slot, each in shown.items()}
    return {slot: _check_sorted(slot, tokens) for slot, tokens in found.items()}


def _check_sorted(slot: str, tokens: ByteArray) -> _Sorted:
    """Return tokens as (t,) texts of bytes; :class:`InvalidArray` if one comes twice."""
    flat: _Sorted = np.ascontiguousarray(tokens).view("S32").reshape(-1)
    if not (flat[:-1] < flat[1:]).all():
        raise InvalidArray(f"The tokens of {slot!r} are not sorted, each once.")
    return flat
