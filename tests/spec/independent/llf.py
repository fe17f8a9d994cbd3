"""Section 12: llf over rows, with a start that the terms give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from . import degrees, llf_start, moments as sums, stages as shared
from .derivations import Refusal
from .kinds import Kind, Rule
from .llf_race import race
from .llf_rows import Member, conclude
from .order import Exchange, Stage
from .session import Session

__all__ = ["conclude"]
VERSION: Final = 2
ALIGNED: Final = True
RESULTS: Final = ("closed",)
RESULTS_TO: Final = "all"
_OWN: Final = frozenset({"updates", "cohorts", "totals"})
_TOTALS: Final = {
    "updates": Rule("<i8", ("h", 3), 1),
    "cohorts": Rule("u1", ("h", "slots"), 0, 1),
    "totals": Rule("<u8", ("h", "w")),
}
_CLOSED: Final = {
    **_TOTALS,
    "closed_in": Rule("<i8", (2,), 1),
    "closed_by": Rule("u1", ("slots",), 0, 1),
    "closing": Rule("<u8", ("closing",)),
}
_GATHERED: Final = {
    **_CLOSED,
    "gathered_in": Rule("<i8", (2,), 1),
    "gathered_by": Rule("u1", ("slots",), 0, 1),
    "gathered": Rule("<u8", ("gathered",)),
}
_MEMBERS: Final = {"members": "list of string"}
KINDS: Final[Mapping[str, Kind]] = {
    **shared.KINDS,
    **sums.KINDS,
    **llf_start.KINDS,
    "update": Kind({"number": "integer", **_MEMBERS}, _TOTALS),
    "close": Kind(_MEMBERS, _TOTALS),
    "gather": Kind(_MEMBERS, _CLOSED),
    "tell": Kind(_MEMBERS, _GATHERED),
    "closed": Kind({}, _GATHERED),
}
DEFAULTS: Final[Mapping[str, Any]] = {
    "n_clusters": None,
    "initial_centroids": None,
    "init": "careful",
    "n_init": 1,
    "allow_two_parties": False,
    "output": "labels",
    "alignment": {},
    "max_iter": 100,
    "tol": 1e-5,
    "min_cluster_rows": 10,
    "publish": "centroids",
    "scaling": "standard",
    "algorithm": "cmeans",
    "fuzzifier": "auto",
    "small_cohorts": "refuse",
}
_SUMMED: Final = 3
_FROM_PARTIES: Final = {"careful", "random_party"}
_STARTS: Final = {"given", "bounds", *_FROM_PARTIES}


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, llf: its stages."""
    params = _read_params(session)
    exchanges = (
        Exchange("update", "sums", 1, params["max_iter"], own=_OWN),
        Exchange("close", "closing", own=_OWN),
        Exchange("gather", "gathered", own=_OWN),
        Exchange("tell", "told", own=_OWN),
    )
    updates = Stage("updates", exchanges, Member(params), each_run=True)
    setup = (shared.secrets(), shared.alignment(session))
    return (*setup, *_pooling(session, params), *_starts(params), updates)


def _pooling(session: Session, params: Mapping[str, Any]) -> Iterator[Stage]:
    """Section 12, llf, stages: what pools moments."""
    if params["scaling"] == "standard":
        two = len(session.slots) < _SUMMED
        yield (
            sums.moments(session)
            if not two
            else shared.statistics(session, moments=True, ranges=False)
        )


def _starts(params: Mapping[str, Any]) -> Iterator[Stage]:
    """Section 12, llf, stages: what comes before the updates."""
    if params["init"] in _FROM_PARTIES:
        yield llf_start.start(params)
    if params["n_init"] > 1:
        yield race(params)


def _read_params(session: Session) -> dict[str, Any]:
    """Section 12, llf: parameters of terms that fit the roster."""
    said = session.terms["protocol"]["params"]
    params = {**DEFAULTS, **said}
    params["init"] = params["init"] or "careful"
    if set(said) - set(DEFAULTS) or params["init"] not in _STARTS:
        raise Refusal("version-mismatch")
    given, F = params["initial_centroids"] or [], len(session.columns)
    if any(len(row) != F for row in given):
        raise Refusal("invalid-parameters")
    _check_cohorts(session, params)
    n = session.n_rows(session.slots)
    params["fuzzifier"] = degrees.find_fuzzifier(params, n, F)
    return params


def _check_cohorts(session: Session, params: Mapping[str, Any]) -> None:
    """Section 12, llf, degrees: as few rows of others as their totals give away."""
    if params["algorithm"] == "cmeans" or params["small_cohorts"] == "allow":
        return
    rows, F = [session.n_rows([slot]) for slot in session.slots], len(session.columns)
    rounds = params["max_iter"] + params["n_init"] + 1
    unknown = 2 * rounds * sum(session.runs) * (F + 1) / F
    if len(rows) > 1 and sum(rows) - max(rows) < unknown:
        raise Refusal("protocol-failed")
