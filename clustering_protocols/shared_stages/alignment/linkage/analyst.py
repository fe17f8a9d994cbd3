"""The analyst role: passes of lists, and rows linked by tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Params,
    Reopen,
    SessionContext,
    all_of,
)
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment.digests import Digests, compare
from clustering_protocols.shared_stages.alignment.overlap import check_overlap
from clustering_protocols.shared_stages.alignment.params import Alignment

from . import messages
from .links import as_texts, common_rows
from .messages import LinkageState
from .rings import n_passes, neighbour, shared_groups


@dataclass(frozen=True)
class LinkageAnalyst(AnalystRole[Params, Record, LinkageState]):
    """Three rounds for two parties of a row group, and one more for each further one."""

    alignment: Alignment

    state = LinkageState

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody who shares rows for masked values."""
        return _ask_sharing(session, messages.MaskKeys(), "mask-keys", 0)

    def step(
        self,
        session: SessionContext,
        state: LinkageState,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Return the next round; at the end the numbers of rows that take part."""
        if state.asked == "select-linked":
            compare(session, all_of(Digests, contributions))
            return Finish(n_rows=state.n_rows)
        if state.asked == "show-tokens":
            return self._ask_select(session, contributions)
        if state.n_passed < n_passes(session.layout):
            task = messages.PassKeys()
            return _ask_sharing(session, task, "pass-keys", state.n_passed + 1)
        return self._ask_tokens(session)

    def _ask_tokens(self, session: SessionContext) -> Ask:
        n_keys = len(self.alignment.match_keys)
        sizes = {
            slot: {"k": n_keys, "t": session.member(neighbour(group, slot, 1)).n_rows}
            for group in shared_groups(session.layout)
            for slot in group
        }
        return Ask(
            state=LinkageState(asked="show-tokens", n_rows={}),
            tasks=dict.fromkeys(sizes, messages.ShowTokens()),
            dims=sizes,
        )

    def _ask_select(
        self, session: SessionContext, contributions: Mapping[str, Record]
    ) -> Ask:
        """Tell each slot which of its rows take part."""
        shown = all_of(messages.KeyTokens, contributions)
        n_rows = {slot: session.member(slot).n_rows for slot in session.slots}
        rows = dict.fromkeys(session.slots, np.empty(0, dtype=np.int64))
        for group in shared_groups(session.layout):
            # the party before a slot in the ring sends the tokens of its rows
            sent = [shown[neighbour(group, slot, -1)].tokens for slot in group]
            lists = dict(zip(group, map(as_texts, group, sent), strict=True))
            found = common_rows(list(lists.values()))
            n_common = len(found[0])
            check_overlap(session, group, n_common, self.alignment.minimum_overlap)
            n_rows |= dict.fromkeys(group, n_common)
            rows |= zip(group, found, strict=True)
        tasks = {
            slot: messages.SelectLinked(rows=rows[slot], n_rows=n_rows)
            for slot in session.slots
        }
        return Ask(
            state=LinkageState(asked="select-linked", n_rows=n_rows), tasks=tasks
        )


def _ask_sharing(session: SessionContext, task: Record, asked: str, passed: int) -> Ask:
    slots = [slot for group in shared_groups(session.layout) for slot in group]
    state = LinkageState.model_validate(
        {"asked": asked, "n_passed": passed, "n_rows": {}}
    )
    return Ask(state=state, tasks=dict.fromkeys(slots, task))
