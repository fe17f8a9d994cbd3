"""Both roles of profiles: the analyst adds up what it cannot read, parties read totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Outcome,
    Params,
    PartyContext,
    PartyRole,
    Reopen,
    Reply,
    SessionContext,
    all_of,
)
from clustering_protocols.contract.published import Assignment
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.profiles import Labelled, messages, totals
from clustering_protocols.shared_stages.profiles.profile import agree, profile_of
from clustering_protocols.shared_stages.profiles.totals import (
    N_SUMS,
    ProfileFields,
    ProfileTotals,
    share_of,
)
from clustering_protocols.shared_stages.sums import (
    Sum,
    SumProgram,
    Sums,
    add_shares,
    members,
    n_rows,
)
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.sections import Release


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


Task = (
    messages.TakeLabels
    | messages.AddProfile
    | messages.TellProfile
    | messages.ReadProfiles
)


@dataclass(frozen=True)
class ProfilesParty(PartyRole[Params, Task]):
    """Takes the labels, adds up over its column group, makes the profile.

    labelled: returns what the protocol makes of a result.
    """

    labelled: Labelled

    def reply(self, context: PartyContext, task: Task, data: DataSource) -> Reply:
        """Return the answer to one of the stage's tasks."""
        if isinstance(task, messages.TakeLabels):
            return _take(task, self.labelled(context, task, data))
        if isinstance(task, messages.AddProfile):
            return _add_share(context, task, data)
        if isinstance(task, messages.TellProfile):
            return _tell(context, task, data)
        return _check_told(context, task)


def _take(task: messages.TakeLabels, outcome: Outcome) -> Reply:
    sizes = outcome.cluster_sizes
    known = 0 if sizes is None else len(sizes)
    n_clusters = max(known, 1 + int(outcome.labels.max(initial=0)))
    if n_clusters > messages.MOST_CLUSTERS:
        raise ProtocolFailed("There are too many clusters for a profile.")
    kept = Assignment(
        labels=outcome.labels,
        chosen=task.chosen,
        result=sha256(task.result.data).hexdigest(),
    )
    answer = messages.LabelsTaken(n_clusters=n_clusters)
    return Reply(contribution=answer, remember=[kept])


def _add_share(
    context: PartyContext, task: messages.AddProfile, data: DataSource
) -> Reply:
    if task.n_clusters > sum(map(context.session.n_rows, context.session.slots)):
        raise ProtocolFailed("The analyst reports more clusters than there are rows.")
    agreed = context.memory.get(messages.ProfiledClusters)
    if agreed is not None and task.n_clusters != agreed.n_clusters:
        raise ProtocolFailed("The analyst reports another number of clusters.")
    labels = context.recall(Assignment).labels
    if labels.max(initial=-1) >= task.n_clusters:
        raise ProtocolFailed("The analyst reports fewer clusters than there are.")
    turn = _program(task.n_clusters).play(context, data, task.sum, task, task.total)
    clusters = messages.ProfiledClusters(n_clusters=task.n_clusters)
    return Reply(
        contribution=messages.ProfileShare(words=turn.words),
        remember=[*turn.remember, clusters],
    )


def _tell(context: PartyContext, task: messages.TellProfile, data: DataSource) -> Reply:
    clusters = context.recall(messages.ProfiledClusters)
    program = _program(clusters.n_clusters)
    turn = program.play(context, data, N_SUMS + 1, task, task.total)
    totals = turn.outcome
    alone, column = _is_alone(context), context.slot.column
    exact, rounded = (
        messages.encode_profiles([profile_of(totals, column, own=alone, rounded=each)])
        for each in (False, True)
    )
    leads = members(context)[0] == context.slot.name
    tells = _release(context).profiles == "everybody" and leads and not alone
    return Reply(
        contribution=messages.ProfileTold(text=rounded if tells else rounded[:0]),
        remember=[
            *turn.remember,
            messages.ProfileMemory(exact=exact, rounded=rounded),
        ],
    )


def _check_told(context: PartyContext, task: messages.ReadProfiles) -> Reply:
    """Refuse another profile of the own fields than was added up."""
    told = messages.read_profiles(task.text)
    layout = context.session.layout
    columns = list(filter(layout.adds_up, range(layout.n_column_groups)))
    if [each.column for each in told] != columns:
        raise ProtocolFailed("The analyst reports other profiles than were asked for.")
    if not _is_alone(context):
        own = messages.one_profile(context.recall(messages.ProfileMemory).rounded)
        if not agree(own, told[columns.index(own.column)]):
            raise ProtocolFailed("Another profile is told than was added up.")
    return Reply(contribution=messages.ProfilesRead(), remember=[task])


def add_up(
    n_clusters: int, context: PartyContext, data: DataSource
) -> Sums[ProfileTotals]:
    """Add up over the column group all that a profile follows from; see :mod:`.totals`."""
    totals = ProfileTotals(
        fields=ProfileFields(_schema(context)),
        n_clusters=n_clusters,
        n_rows=n_rows(context),
        n_members=len(members(context)),
        smallest=_release(context).min_cluster_rows,
        describes=context.session.params.describes,
    )
    labels = context.recall(Assignment).labels
    for which in range(1, N_SUMS + 1):
        total = yield from Sum(
            f"profile-{which}",
            local=partial(share_of, totals, data, labels),
            fits=totals.fits,
            decode=lambda words: words.view(np.int64),
        )
        totals = totals.with_sum(total)
    return totals


def _program(n_clusters: int) -> SumProgram[ProfileTotals]:
    return SumProgram(
        "profiles",
        N_SUMS,
        partial(add_up, n_clusters),
        partial(sizes, n_clusters),
        alone_below=MINIMUM_MEMBERS,
    )


def _is_alone(context: PartyContext) -> bool:
    return not context.session.layout.adds_up(context.slot.column)


def _release(context: PartyContext) -> Release:
    release = context.session.terms.release
    if release is None:
        raise ProtocolFailed("The terms release no profile.")
    return release


def _schema(context: PartyContext) -> Schema:
    schema = context.session.terms.dictionary_of(context.slot.name)
    if schema is None:
        raise ProtocolFailed("The terms describe no fields.")
    return schema
