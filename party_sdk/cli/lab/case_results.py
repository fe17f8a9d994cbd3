"""What comes of each case: the session that was played, and its agreement with truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clustering_protocols import catalogue
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.numerics import scores
from clustering_protocols.quality.gap import says_one
from clustering_protocols.simulation import ANALYST
from party_sdk.cli.lab.cases import Case
from party_sdk.lab import SimulatedRun, SimulatedSession


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseResult:
    """What came of a case."""

    case: Case
    session: SimulatedSession

    @property
    def rule(self) -> str | None:
        """Return the figure that chose the run; None of one run."""
        several = self.case.evaluation
        return (
            None if several is None else several.rule(self.session.results[0].figures)
        )

    @cached_property
    def truth(self) -> Mapping[str, Mapping[str, float]]:
        """Return agreement with the true classes, where they are known.

        ``truth`` is that of the session, ``pooled_truth`` that of the pooled run.
        """
        classes, whole = self.case.table.classes, self.session.whole
        if classes is None:
            return {}
        found = {"truth": whole.labels, "pooled_truth": whole.pooled}
        return {
            name: scores.agreement_with(classes, labels)
            for name, labels in found.items()
        }

    @property
    def no_clusters(self) -> bool | None:
        """Return whether the gap statistic says one cluster; None where it is unknown."""
        return says_one([run.figures for run in self.session.runs if run.figures])

    @property
    def sent_bytes(self) -> int:
        """Return what all roles sent."""
        return sum(cost.sent_bytes for cost in self.session.costs.values())

    @property
    def seconds(self) -> tuple[float, float]:
        """Return the seconds of the analyst, and of the slowest party."""
        costs = dict(self.session.costs)
        analyst = costs.pop(ANALYST).seconds
        return analyst, max(cost.seconds for cost in costs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFailure:
    """A case that ended without a result, and why."""

    case: Case
    reason: str


def run(case: Case, seed: int) -> CaseResult | CaseFailure:
    """Return what comes of a case, or why nothing does."""
    try:
        return CaseResult(case=case, session=case.play(seed))
    except CoterieError as error:
        return CaseFailure(case=case, reason=error.detail)


# As JSON


def documents(results: Sequence[CaseResult | CaseFailure]) -> Iterator[dict[str, Any]]:
    """Yield each case as JSON values."""
    for result in results:
        case = result.case
        yield {
            "file": case.file,
            "protocol": case.protocol,
            "layout": case.layout,
            "params": catalogue.find_changed_params(case.params),
            **(
                document(result)
                if isinstance(result, CaseResult)
                else {"error": result.reason}
            ),
            "risks": dict(case.risks),
            "risks_of_several_runs": list(case.of_runs),
        }


def document(result: CaseResult) -> dict[str, Any]:
    """Return what came of a case as JSON values."""
    analyst, slowest = result.seconds
    session = result.session
    return {
        "lanes": [_run_document(run) for run in session.runs],
        "chosen": session.runs[session.chosen].n_clusters,
        "chosen_by": result.rule,
        "no_clusters": result.no_clusters,
        "warnings": list(session.warnings),
        "fidelity": session.fidelity,
        "objective_ratio": session.objective_ratio,
        "objective_ratio_same_rules": session.objective_ratio_same_rules,
        **result.truth,
        "rounds": session.rounds,
        "sent_bytes": result.sent_bytes,
        "seconds": {
            "analyst": round(analyst, 6),
            "slowest_party": round(slowest, 6),
        },
    }


def _run_document(run: SimulatedRun) -> dict[str, Any]:
    if run.figures is None:
        return {"n_clusters": run.n_clusters}
    found = dict(run.figures)
    with_rows = found.pop("n_clusters")
    return {"n_clusters": run.n_clusters, "clusters_with_rows": with_rows, **found}
