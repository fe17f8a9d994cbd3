"""The manifest of a simulated session: all that it takes to play it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering_protocols.simulation import SimulationResult
from party_sdk.lab.trials.parties import Deal
from party_sdk.results.manifests import describe_session, describe_table, digest_matrix

if TYPE_CHECKING:
    from party_sdk.lab.trials.simulated_session import SimulatedSession


def build_manifest(
    played: SimulatedSession,
    held: Deal,
    simulated: SimulationResult,
    seed: int,
    choices: Mapping[str, Any],
) -> dict[str, Any]:
    """Return terms, seeds, versions, digests and the result, as JSON values.

    choices: what every party decided alone.
    """
    session, labels = simulated.trace.session, played.whole.labels
    figures = played.figures
    return {
        "kind": "simulation-manifest",
        **describe_session(session.terms, session.agreement_digest),
        "seed": seed,
        "dealt_by_seed": held.table is not None,
        "choices": dict(choices),
        "tables": {
            slot: describe_table(data) for slot, data in held.parts.data.items()
        },
        "result": {
            "n_clusters": played.n_clusters,
            "sizes": np.bincount(labels[labels >= 0]).tolist(),
            "noise_rows": int(np.count_nonzero(labels < 0)),
            "labels_sha256": digest_matrix(labels),
            "figures": None if figures is None else figures.model_dump(mode="json"),
            "fidelity": played.fidelity,
            "objective_ratio": played.objective_ratio,
            "objective_ratio_same_rules": played.objective_ratio_same_rules,
            "rounds": played.rounds,
        },
    }
