"""Section 12: llf over rows, with a start that the terms give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from . import degrees, llf_start, moments as sums, stages as shared
from .centroids import nearest
from .derivations import Refusal
from .kinds import Kind, Record, Rule
from .llf_race import race
from .llf_rows import Member, find_final, find_order, publish
from .llf_state import Here, Known
from .order import Exchange, Stage, View
from .session import Session

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
    "quorum": None,
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


def quorum(session: Session) -> int:
    """Section 12, llf, quorum: how many signatures of the closing suffice."""
    params = session.terms["protocol"]["params"]
    return int(params.get("quorum") or len(session.slots))


def results_to(session: Session) -> str:
    """Section 12, llf, quorum: the audience of results."""
    params = session.terms["protocol"]["params"]
    return "all" if params.get("quorum") is None else "slot"


def stages(session: Session) -> Sequence[Stage]:
    """Section 12, llf: its stages."""
    params = _read_params(session)
    least = 1 if params["quorum"] is None else 0
    exchanges = (
        Exchange("update", "sums", least, params["max_iter"], own=_OWN),
        Exchange("close", "closing", least, own=_OWN),
        Exchange("gather", "gathered", least, own=_OWN),
        Exchange("tell", "told", least, own=_OWN),
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
    _check_quorum(session, params)
    _check_cohorts(session, params)
    n = session.n_rows(session.slots)
    params["fuzzifier"] = degrees.find_fuzzifier(params, n, F)
    return params


def _check_quorum(session: Session, params: Mapping[str, Any]) -> None:
    """Section 12, llf, quorum: terms that go together."""
    least = 2 if params["allow_two_parties"] else _SUMMED
    fits = least <= quorum(session) <= len(session.slots)
    of_all = params["quorum"] is None and params["init"] != "given"
    if not fits or (params["n_init"] > 1 and not of_all):
        raise Refusal("invalid-parameters")


def _check_cohorts(session: Session, params: Mapping[str, Any]) -> None:
    """Section 12, llf, degrees: as few rows of others as their totals give away."""
    if params["algorithm"] == "cmeans" or params["small_cohorts"] == "allow":
        return
    rows = sorted(session.n_rows([slot]) for slot in session.slots)
    F, members = len(session.columns), quorum(session)
    rounds = params["max_iter"] + params["n_init"] + 1
    unknown = 2 * rounds * sum(session.runs) * (F + 1) / F
    if len(rows) > 1 and sum(rows[: max(members - 1, 1)]) < unknown:
        raise Refusal("protocol-failed")


def conclude(view: View, result: Record) -> Any:
    """Section 12, llf, result: labels, numbered anew; read now where it was not."""
    here, known, order = _number(view, result)
    return np.argsort(order)[find_final(here, known)]


def label_left_out(view: View, result: Record, left: Session) -> Any:
    """Section 11, repeated people: labels of rows that were left out."""
    here, known, order = _number(view, result)
    return np.argsort(order)[nearest(here.scale(left.rows), known.V)]


def _number(view: View, result: Record) -> tuple[Here, Known, Any]:
    """Section 12, llf, result: where a member stands, and the order of clusters."""
    here = Here.of(view, _read_params(view.session))
    known, order = here.follow(result), view.memory.get("numbers")
    if order is None:
        means, counts = here.means(result, known)
        sizes, _ = here.around(result, known, means)
        shown = publish(here, known, means, counts, sizes)
        order = find_order(here, known, sizes, shown)
    return here, known, order
