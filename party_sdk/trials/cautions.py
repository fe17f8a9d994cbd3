"""What may have spoilt a simulated session."""

from __future__ import annotations

from clustering_protocols import cautions
from clustering_protocols.simulation import Simulated

_LOSSLESS = 0.95


def simulated_cautions(simulated: Simulated, fidelity: float | None) -> list[str]:
    """Return sentences on a session, each once.

    What its terms let expect is said where fidelity shows it, or is not known.
    """
    session = simulated.trace.session
    run, layout = session.runs[simulated.chosen], session.layout
    found: list[str] = []
    if fidelity is None or fidelity < _LOSSLESS:
        groups = map(layout.column_group, range(layout.n_column_groups))
        widths = [session.member(group[0]).n_columns for group in groups]
        here = "" if fidelity is None else f" Here it is {fidelity:.2f}."
        found += [f"{said}{here}" for said in cautions.of_session(run, layout, widths)]
    for outcome in simulated.outcomes.values():
        sizes = outcome.cluster_sizes
        found += cautions.of_result(
            run,
            layout=layout,
            report=outcome.report,
            figures=outcome.figures[outcome.chosen] if outcome.figures else None,
            sizes=None if sizes is None else sizes.tolist(),
        )
    return list(dict.fromkeys(found))
