"""The analyst's side of profiles: it adds up what it cannot read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Params,
    Reopen,
    SessionContext,
    all_of,
)
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.profiles import messages, totals
from clustering_protocols.shared_stages.profiles.totals import ProfileFields
from clustering_protocols.shared_stages.sums import add_shares


def sizes(n_clusters: int, session: SessionContext, slot: str) -> list[int]:
    """Return how many numbers each of the sums has."""
    schema = session.terms.dictionary_of(slot)
    if schema is None:
        return [0] * totals.N_SUMS
    fields, sums = ProfileFields(schema), range(1, totals.N_SUMS + 1)
    return [totals.n_numbers(fields, n_clusters, which) for which in sums]


@dataclass(frozen=True)
class ProfilesAnalyst(AnalystRole[Params, Record, messages.AddingProfile]):
    """Adds up, sum by sum; the engine itself hands out labels before.

    told: whether everybody reads all profiles.
    """

    told: bool

    state = messages.AddingProfile

    def start(self, session: SessionContext) -> Ask | Finish:
        """Fail: the engine opens the first round."""
        raise ProtocolFailed("Labels are the engine's to hand out.")

    def step(
        self,
        session: SessionContext,
        state: messages.AddingProfile,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Hand back totals with the next sum, then profiles."""
        if not state.sum:
            taken = all_of(messages.LabelsTaken, contributions).values()
            nothing = np.empty(0, dtype=np.uint64)
            start = messages.AddingProfile(
                sum=1, n_clusters=max(each.n_clusters for each in taken)
            )
            return _add(
                session,
                start,
                dict.fromkeys(session.layout.audiences("column"), nothing),
            )
        if state.sum <= totals.N_SUMS:
            shares = all_of(messages.ProfileShare, contributions)
            sums = {
                group: add_shares([shares[slot].words for slot in group])
                for group in session.layout.audiences("column")
            }
            after = state.model_copy(update={"sum": state.sum + 1})
            if state.sum < totals.N_SUMS:
                return _add(session, after, sums)
            return _each(
                after, {g: messages.TellProfile(total=t) for g, t in sums.items()}
            )
        if state.sum == totals.N_SUMS + 1 and self.told:
            return _show(session, state, contributions)
        return Finish()


def _add(
    session: SessionContext,
    state: messages.AddingProfile,
    sums: Mapping[tuple[str, ...], WordArray],
) -> Ask:
    k, which = state.n_clusters, state.sum
    tasks = {
        group: messages.AddProfile(sum=which, n_clusters=k, total=total)
        for group, total in sums.items()
    }
    adds_up, slot_of = session.layout.adds_up, session.layout.slot
    words = {
        slot: 1 + sizes(k, session, slot)[which - 1]
        if adds_up(slot_of(slot).column)
        else 0
        for slot in session.slots
    }
    dims = {slot: {"words": size} for slot, size in words.items()}
    return _each(state, tasks, dims)


def _each(
    state: messages.AddingProfile,
    of_groups: Mapping[tuple[str, ...], Record],
    dims: Mapping[str, Mapping[str, int]] | None = None,
) -> Ask:
    """Return a round in which every column group gets its task."""
    tasks = {slot: task for group, task in of_groups.items() for slot in group}
    return Ask(state=state, tasks=tasks, dims=dims or {})


def _show(
    session: SessionContext,
    state: messages.AddingProfile,
    contributions: Mapping[str, Record],
) -> Ask:
    """Return the round in which everybody reads what the leaders tell."""
    told = all_of(messages.ProfileTold, contributions)
    profiles: list[Profile] = []
    for column, group in enumerate(session.layout.audiences("column")):
        if not session.layout.adds_up(column):
            continue
        profile = messages.one_profile(told[group[0]].text)
        if profile.column != column or profile.own or not profile.rounded:
            raise ProtocolFailed(f"{group[0]!r} tells another profile than was asked.")
        profiles.append(profile)
    return Ask.everybody(
        session,
        messages.ReadProfiles(text=messages.encode_profiles(profiles)),
        state=state.model_copy(update={"sum": state.sum + 1}),
        profiles=tuple(profiles),
    )
