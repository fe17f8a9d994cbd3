"""The analyst's role: request the centres, then merge them."""

from collections.abc import Mapping

import numpy as np

from clustering_protocols.contract import AnalystRole, Ask, Finish
from clustering_protocols.records.record import Record

from . import maths, messages
from .params import OneShot, OneShotSession


class Merger(AnalystRole[OneShot, messages.Centres]):
    """Clusters the centres of all parties."""

    def start(self, session: OneShotSession) -> Ask:
        """Ask every party for its centres."""
        size = {
            "k": session.params.n_clusters,
            "m": session.member(session.slots[0]).n_columns,
        }
        dims = dict.fromkeys(session.slots, size)
        return Ask.to_everybody(session, messages.Upload(), dims=dims)

    def step(
        self,
        session: OneShotSession,
        state: Record,
        contributions: Mapping[str, messages.Centres],
    ) -> Finish:
        """Return the merged centres to all parties, which label their rows themselves."""
        centres, sizes = (
            np.concatenate([getattr(each, name) for each in contributions.values()])
            for name in ("centres", "sizes")
        )
        merged = maths.merge(centres, sizes, session.params.n_clusters)
        results = dict.fromkeys(session.slots, messages.Result(centres=merged))
        return Finish.with_results(results, labelled_at_home=True)
