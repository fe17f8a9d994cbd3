"""Section 11: several runs of a session, and which of them counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from .derivations import Refusal
from .kinds import Kind, Record
from .order import Memory, Stage, View, run_name
from .session import Session

KINDS: Final[Mapping[str, Kind]] = {
    "conclude": Kind({"figures": "list of object", "chosen": "integer"})
}
_USUAL: Final = (
    "simplified_silhouette",
    "calinski_harabasz",
    "partition_coefficient",
)
_LEAST_IS_BEST: Final = {"davies_bouldin", "xie_beni"}


def repeat_stages(
    session: Session, stages: Callable[[Session], Sequence[Stage]]
) -> Sequence[Stage]:
    """Section 11, several runs: the stages, those of a run behind each other."""
    every = stages(session)
    if len(session.runs) == 1:
        return every
    repeated = [
        replace(stage, name=f"{stage.name}-{run + 1}", run=run)
        for run in range(len(session.runs))
        for stage in stages(session.of_run(run))
        if stage.each_run
    ]
    return [*(stage for stage in every if not stage.each_run), *repeated]


def closing(stage: Stage, session: Session) -> Stage:
    """Section 11, several runs: the closing, whose task then says which run counts."""
    if len(session.runs) == 1:
        return stage
    (sign,) = stage.exchanges
    return replace(stage, exchanges=(replace(sign, task="conclude"),))


def last_stage(stages: Sequence[Stage], chosen: int) -> Stage:
    """Section 11, several runs: of a protocol's stages the one whose labels count."""
    return {stage.run: stage for stage in stages}.get(chosen, stages[-1])


def write_memory(run: int | None, remembered: Memory) -> Memory:
    """Section 11, several runs: what is remembered in a run, apart from other runs."""
    return {run_name(run, name): value for name, value in remembered.items()}


def read_memory(run: int | None, memory: Memory) -> Memory:
    """Section 11, several runs: what a run knows, its own before what all share."""
    if run is None:
        return memory
    mark = run_name(run, "")
    own = {n.removesuffix(mark): v for n, v in memory.items() if n.endswith(mark)}
    return memory | own


def told_of_results(session: Session, told: Sequence[str]) -> Sequence[str]:
    """Section 11, several runs: the digests of results, behind that of the task."""
    return told[1:] if len(session.runs) > 1 else told


def check_conclusion(view: View, task: Record) -> Memory:
    """Section 11, several runs: the run that counts, once the task may say so."""
    if task.kind != "conclude":
        return {}
    figures, chosen = task.values["figures"], task.values["chosen"]
    check_choice(view, figures, chosen)
    taken = view.memory.get("assigned")
    if taken is not None and taken["chosen"] != chosen:
        raise Refusal("protocol-failed")
    return {"chosen": chosen}


def check_choice(view: View, figures: Sequence[Mapping[str, Any]], chosen: int) -> None:
    """Section 11, several runs: figures and choice are those that are due."""
    n_runs = len(view.session.runs)
    if (figures and len(figures) != n_runs) or not 0 <= chosen < n_runs:
        raise Refusal("protocol-failed")
    for run, told in enumerate(figures):
        own = view.memory.get(run_name(run, "figures"))
        if own is not None and not _agree(own, told):
            raise Refusal("protocol-failed")
    evaluation = view.session.terms.get("evaluation")
    if evaluation is None or evaluation.get("choose") == "later":
        return
    if chosen != choose(evaluation.get("choose", "usual"), figures):
        raise Refusal("protocol-failed")


def _agree(own: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Section 11, several runs: own figures are those that were told."""
    return set(own) == set(told) and all(
        math.isclose(value, told[name], rel_tol=1e-5, abs_tol=1e-12)
        if isinstance(value, float) and isinstance(told[name], float | int)
        else value == told[name]
        for name, value in own.items()
    )


def choose(rule: str, figures: Sequence[Mapping[str, Any]]) -> int:
    """Section 11, several runs: the run that a rule chooses."""
    for name in _USUAL if rule == "usual" else (rule,):
        known = {r: f[name] for r, f in enumerate(figures) if f[name] is not None}
        if known:
            sign = 1 if name in _LEAST_IS_BEST else -1
            return min(known, key=lambda run: (sign * known[run], run))
    if rule == "usual" and figures and all(f["n_clusters"] == 1 for f in figures):
        return 0
    raise Refusal("invalid-parameters")
