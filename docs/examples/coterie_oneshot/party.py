"""The party's role: one method for the task, and one for the result."""

import numpy as np

from clustering_protocols.contract import Outcome, PartyRole, Reply
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.record import Record

from . import maths, messages
from .params import OneShot, OneShotContext


class Uploader(PartyRole[OneShot, messages.Upload, Record, messages.Result]):
    """Sends the centres of its clusters, and labels its rows by the session's centres."""

    def reply(
        self, context: OneShotContext, task: messages.Upload, data: DataSource
    ) -> Reply:
        """Return the centres and sizes of the party's clusters."""
        X, k = matrix(data), context.session.params.n_clusters
        rng = context.session.generator("oneshot", context.slot.name)
        centres = maths.cluster(X, k, rng)
        sizes = np.bincount(maths.label(X, centres), minlength=k).astype(np.float64)
        return Reply(contribution=messages.Centres(centres=centres, sizes=sizes))

    def conclude(
        self, context: OneShotContext, result: messages.Result, data: DataSource | None
    ) -> Outcome:
        """Return the labels of the party's rows."""
        X = np.empty((0, result.centres.shape[1])) if data is None else matrix(data)
        labels = maths.label(X, result.centres) if len(X) else np.empty(0, np.int64)
        return Outcome(labels=labels, centroids=result.centres)
