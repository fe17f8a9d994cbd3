"""What comes of each case: figures of its runs, fidelity, costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustering_protocols import metrics, registry, simulation
from clustering_protocols.errors import CoterieError
from clustering_protocols.figures import Figures
from clustering_protocols.quality.gap import says_one
from clustering_protocols.simulation import ANALYST, Cost
from party_sdk.cli.cases import Case
from party_sdk.cli.trial import evaluate
from party_sdk.trials.cautions import simulated_cautions


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One run: how many clusters, and what they are like where the protocol says it."""

    n_clusters: int | None
    figures: Figures | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """What came of a case.

    Attributes
    ----------
    chosen : int
        The number of the run that counts, from 0.
    rule : str, optional
        The figure that chose it; None of one run.
    truth, pooled_truth : mapping of str to float
        Agreement with the true classes, where they are known.
    warnings : sequence of str
        What may have spoilt the result.
    """

    case: Case
    lanes: Sequence[Lane]
    chosen: int
    rule: str | None
    fidelity: float
    truth: Mapping[str, float]
    pooled_truth: Mapping[str, float]
    rounds: int
    costs: Mapping[str, Cost]
    warnings: Sequence[str] = ()

    @property
    def no_clusters(self) -> bool | None:
        """Return whether the gap statistic says one cluster; None where it is unknown."""
        return says_one([lane.figures for lane in self.lanes if lane.figures])

    @property
    def sent_bytes(self) -> int:
        """Return what all roles sent."""
        return sum(cost.sent_bytes for cost in self.costs.values())

    @property
    def seconds(self) -> tuple[float, float]:
        """Return the seconds of the analyst, and of the slowest party."""
        costs = dict(self.costs)
        analyst = costs.pop(ANALYST).seconds
        return analyst, max(cost.seconds for cost in costs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A case that ended without a result, and why."""

    case: Case
    reason: str


def run(case: Case, seed: int) -> Tried | Failed:
    """Return what comes of a case, or why nothing does."""
    try:
        evaluated = evaluate(
            case.table, case.params, case.evaluation, case.lattice, seed
        )
    except CoterieError as error:
        return Failed(case=case, reason=error.detail)
    return tried(case, evaluated)


def tried(case: Case, evaluated: simulation.Evaluated) -> Tried:
    """Return what came of a case that was simulated."""
    simulated = evaluated.simulated
    outcome = next(iter(simulated.outcomes.values()))
    # of one run some protocols tell the coordinator alone, to fewer digits
    figures: Sequence[Figures | None] = (
        outcome.figures or simulated.figures or [None] * len(case.numbers)
    )
    classes, several = case.table.classes, case.evaluation
    return Tried(
        case=case,
        lanes=[
            Lane(n_clusters=k, figures=figure)
            for k, figure in zip(case.numbers, figures, strict=True)
        ],
        chosen=outcome.chosen,
        rule=None if several is None else several.rule(outcome.figures),
        fidelity=evaluated.fidelity,
        truth=_agreement(classes, evaluated.labels),
        pooled_truth=_agreement(classes, evaluated.pooled),
        rounds=simulated.rounds,
        costs=simulated.costs,
        warnings=simulated_cautions(simulated, evaluated.fidelity),
    )


def _agreement(classes: Any, labels: Any) -> Mapping[str, float]:
    return {} if classes is None else metrics.agreement_with(classes, labels)


# As JSON


def documents(results: Sequence[Tried | Failed]) -> Iterator[dict[str, Any]]:
    """Yield each case as JSON values."""
    for result in results:
        case = result.case
        yield {
            "file": case.file,
            "protocol": case.protocol,
            "layout": case.layout,
            "params": registry.chosen(case.params),
            **(
                document(result)
                if isinstance(result, Tried)
                else {"error": result.reason}
            ),
            "risks": dict(case.risks),
            "risks_of_several_runs": list(case.of_runs),
        }


def document(result: Tried) -> dict[str, Any]:
    """Return what came of a case as JSON values."""
    analyst, slowest = result.seconds
    truth = {"truth": result.truth, "pooled_truth": result.pooled_truth}
    return {
        "lanes": [_lane(lane) for lane in result.lanes],
        "chosen": result.lanes[result.chosen].n_clusters,
        "chosen_by": result.rule,
        "no_clusters": result.no_clusters,
        "warnings": list(result.warnings),
        "fidelity": result.fidelity,
        **(
            {name: dict(found) for name, found in truth.items()} if result.truth else {}
        ),
        "rounds": result.rounds,
        "sent_bytes": result.sent_bytes,
        "seconds": {
            "analyst": round(analyst, 6),
            "slowest_party": round(slowest, 6),
        },
    }


def _lane(lane: Lane) -> dict[str, Any]:
    if lane.figures is None:
        return {"n_clusters": lane.n_clusters}
    found = dict(lane.figures)
    with_rows = found.pop("n_clusters")
    return {"n_clusters": lane.n_clusters, "clusters_with_rows": with_rows, **found}
