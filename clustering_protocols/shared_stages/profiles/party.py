"""A party's side of profiles: it adds its share, and reads each total."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract import (
    Outcome,
    Params,
    PartyContext,
    PartyRole,
    Reply,
)
from clustering_protocols.contract.assignment import Assignment
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.shared_stages.profiles import messages
from clustering_protocols.shared_stages.profiles.analyst import sizes
from clustering_protocols.shared_stages.profiles.own_sums import share_of
from clustering_protocols.shared_stages.profiles.profile import agree, profile_of
from clustering_protocols.shared_stages.profiles.stage import Labelled
from clustering_protocols.shared_stages.profiles.totals import (
    N_SUMS,
    ProfileFields,
    ProfileTotals,
)
from clustering_protocols.shared_stages.sums import (
    Sum,
    SumProgram,
    Sums,
    members,
    n_rows,
)
from clustering_protocols.terms.release import Release
from clustering_protocols.terms.schema import Schema

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
            return _add(context, task, data)
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


def _add(context: PartyContext, task: messages.AddProfile, data: DataSource) -> Reply:
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
