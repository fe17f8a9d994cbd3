"""Roles in the stage of profiles: the analyst adds up shares, parties read the totals."""

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
    Reply,
    SessionContext,
    narrow_all,
)
from clustering_protocols.contract.published import Assignment
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.profiles import OutcomeReader, messages
from clustering_protocols.shared_stages.profiles.profile import are_close, profile_of
from clustering_protocols.shared_stages.profiles.totals import (
    N_SUMS,
    ProfileFields,
    ProfileTotals,
    own_share,
    sum_size,
)
from clustering_protocols.shared_stages.sums import (
    Group,
    Sum,
    SumProgram,
    Sums,
    add_shares,
    build_total_tasks,
    column_group_members,
    n_group_rows,
)
from clustering_protocols.terms.sections import Release


@dataclass(frozen=True)
class ProfilesAnalyst(AnalystRole[Params, Record, messages.AddingProfile]):
    """Adds up the sums of a profile, after the engine has distributed the results."""

    release: Release

    state = messages.AddingProfile

    def start(self, session: SessionContext) -> Ask | Finish:
        """Raise ProtocolFailed, because the engine itself opens the first round."""
        raise ProtocolFailed("The engine opens the first round of profiles.")

    def step(
        self,
        session: SessionContext,
        state: messages.AddingProfile,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Return each total with the task for the next sum; at the end, the profiles."""
        if not state.sum:
            answers = narrow_all(messages.LabelsTaken, contributions).values()
            n_clusters = max(answer.n_clusters for answer in answers)
            start = messages.AddingProfile(sum=1, n_clusters=n_clusters)
            no_totals = dict.fromkeys(
                session.layout.column_groups, np.empty(0, dtype=np.uint64)
            )
            return self._ask_sum(session, start, no_totals)
        if state.sum <= N_SUMS:
            shares = narrow_all(messages.ProfileShare, contributions)
            sums = add_shares(session.layout.column_groups, shares)
            next_state = state.model_copy(update={"sum": state.sum + 1})
            if state.sum < N_SUMS:
                return self._ask_sum(session, next_state, sums)
            tasks = build_total_tasks(
                sums, lambda total: messages.TellProfile(total=total)
            )
            return Ask(state=next_state, tasks=tasks)
        if state.sum == N_SUMS + 1 and self.release.profiles == "everybody":
            return _ask_to_read_profiles(session, state, contributions)
        return Finish()

    def _ask_sum(
        self,
        session: SessionContext,
        state: messages.AddingProfile,
        sums: Mapping[Group, WordArray],
    ) -> Ask:
        tasks = build_total_tasks(
            sums,
            lambda total: messages.AddProfile(
                sum=state.sum, n_clusters=state.n_clusters, total=total
            ),
        )
        program = _build_program(self.release, state.n_clusters)
        dims = program.share_sizes(session, tasks, state.sum)
        return Ask(state=state, tasks=tasks, dims=dims)


def _ask_to_read_profiles(
    session: SessionContext,
    state: messages.AddingProfile,
    contributions: Mapping[str, Record],
) -> Ask:
    """Ask all parties to read the profiles that the leaders have sent."""
    answers = narrow_all(messages.ProfileTold, contributions)
    profiles: list[Profile] = []
    for column, group in enumerate(session.layout.audience_groups("column")):
        if not session.layout.can_pool(column):
            continue
        profile = messages.parse_profile(answers[group[0]].text)
        if profile.column != column or profile.own or not profile.rounded:
            raise ProtocolFailed(f"{group[0]!r} sent a profile that was not requested.")
        profiles.append(profile)
    return Ask.to_everybody(
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
    """Stores its labels, sends shares of the sums, and computes the profile.

    read_outcome: the protocol's function that computes an outcome from a result.
    """

    release: Release
    read_outcome: OutcomeReader

    def reply(self, context: PartyContext, task: Task, data: DataSource) -> Reply:
        """Return the reply to a task of this stage."""
        if isinstance(task, messages.TakeLabels):
            return _store_labels(task, self.read_outcome(context, task, data))
        if isinstance(task, messages.AddProfile):
            return self._add_share(context, task, data)
        if isinstance(task, messages.TellProfile):
            return self._make_profile(context, task, data)
        return _check_profiles(context, task)

    def _add_share(
        self, context: PartyContext, task: messages.AddProfile, data: DataSource
    ) -> Reply:
        if task.n_clusters > sum(map(context.session.n_rows, context.session.slots)):
            raise ProtocolFailed(
                "The analyst reports more clusters than there are rows."
            )
        clusters = messages.ProfiledClusters(n_clusters=task.n_clusters)
        stored = context.memory.get(messages.ProfiledClusters) or clusters
        if task.n_clusters != stored.n_clusters:
            raise ProtocolFailed("The analyst reports a changed number of clusters.")
        labels = context.recall(Assignment).labels
        if labels.max(initial=-1) >= task.n_clusters:
            raise ProtocolFailed("The analyst reports fewer clusters than there are.")
        program = _build_program(self.release, task.n_clusters)
        turn = program.run_to_sum(context, data, task.sum, task, task.total)
        return Reply(
            contribution=messages.ProfileShare(words=turn.words),
            remember=[*turn.remember, clusters],
        )

    def _make_profile(
        self, context: PartyContext, task: messages.TellProfile, data: DataSource
    ) -> Reply:
        clusters = context.recall(messages.ProfiledClusters)
        program = _build_program(self.release, clusters.n_clusters)
        turn = program.run_to_sum(context, data, N_SUMS + 1, task, task.total)
        alone, column = _is_alone(context), context.slot.column
        exact, rounded = (
            messages.encode_profiles(
                [profile_of(turn.outcome, column, own=alone, rounded=flag)]
            )
            for flag in (False, True)
        )
        leads = column_group_members(context)[0] == context.slot.name
        publishes = self.release.profiles == "everybody" and leads and not alone
        profiles = messages.ProfileMemory(exact=exact, rounded=rounded)
        return Reply(
            contribution=messages.ProfileTold(
                text=rounded if publishes else rounded[:0]
            ),
            remember=[*turn.remember, profiles],
        )


def _store_labels(task: messages.TakeLabels, outcome: Outcome) -> Reply:
    sizes = outcome.cluster_sizes
    n_sizes = 0 if sizes is None else len(sizes)
    n_clusters = max(n_sizes, 1 + int(outcome.labels.max(initial=0)))
    if n_clusters > messages.MOST_CLUSTERS:
        raise ProtocolFailed("There are too many clusters for a profile.")
    assignment = Assignment(
        labels=outcome.labels,
        chosen=task.chosen,
        result=sha256(task.result.data).hexdigest(),
    )
    answer = messages.LabelsTaken(n_clusters=n_clusters)
    return Reply(contribution=answer, remember=[assignment])


def _check_profiles(context: PartyContext, task: messages.ReadProfiles) -> Reply:
    """Raise ProtocolFailed if profiles are unexpected or contradict the party's own."""
    published = messages.parse_profiles(task.text)
    layout = context.session.layout
    columns = list(filter(layout.can_pool, range(layout.n_column_groups)))
    if [profile.column for profile in published] != columns:
        raise ProtocolFailed("The analyst reports profiles that were not requested.")
    if not _is_alone(context):
        own = messages.parse_profile(context.recall(messages.ProfileMemory).rounded)
        if not are_close(own, published[columns.index(own.column)]):
            raise ProtocolFailed("The profile differs from the parties' totals.")
    return Reply(contribution=messages.ProfilesRead(), remember=[task])


def _sum_profile_totals(
    release: Release, n_clusters: int, context: PartyContext, data: DataSource
) -> Sums[ProfileTotals]:
    """Compute the totals of a profile over the column group, sum by sum."""
    totals = ProfileTotals(
        fields=_profile_fields(context.session, context.slot.name),
        n_clusters=n_clusters,
        n_rows=n_group_rows(context),
        n_members=len(column_group_members(context)),
        smallest=release.min_cluster_rows,
        describes=context.session.params.describes,
    )
    labels = context.recall(Assignment).labels
    for number in range(1, N_SUMS + 1):
        total = yield from Sum(
            f"profile-{number}",
            local=partial(own_share, totals, data, labels),
            fits=totals.fits_next_sum,
            decode=lambda words: words.view(np.int64),
        )
        totals = totals.with_sum(total)
    return totals


def _sum_sizes(n_clusters: int, session: SessionContext, slot: str) -> list[int]:
    fields = _profile_fields(session, slot)
    return [sum_size(fields, n_clusters, number) for number in range(1, N_SUMS + 1)]


def _profile_fields(session: SessionContext, slot: str) -> ProfileFields:
    dictionary = session.terms.dictionary or ()  # never empty if profiles are released
    return ProfileFields(dictionary[session.layout.slot(slot).column])


def _build_program(release: Release, n_clusters: int) -> SumProgram[ProfileTotals]:
    return SumProgram(
        "profiles",
        N_SUMS,
        partial(_sum_profile_totals, release, n_clusters),
        partial(_sum_sizes, n_clusters),
        alone_below=MINIMUM_MEMBERS,
    )


def _is_alone(context: PartyContext) -> bool:
    return not context.session.layout.can_pool(context.slot.column)
