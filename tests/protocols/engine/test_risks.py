"""Risk sentences are short, and no other parameter value avoids a risk of the defaults."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.terms.session_risks import RISKS, RiskLevel, worst_first
from clustering_protocols.terms.terms import Layout

LAYOUTS = {
    "horizontal": Layout.lattice(4, 1),
    "vertical": Layout.lattice(1, 4),
    "mixed": Layout.lattice(4, 4),
}
SPLITS = [
    (name, split)
    for name, known in catalogue.catalogue().items()
    if known.methods
    for split in known.partitionings
]
NOT_BY_A_DEFAULT = {
    ("llf", "horizontal"): {"start-shows-own-clusters"}  # 'bounds' needs a dictionary
}
"""Risks that another value avoids at the price of other clusters."""
ALL = dict(RISKS) | {
    code: risk
    for name in catalogue.catalogue()
    for code, risk in catalogue.protocol_risks(name).items()
}


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_what_is_so_by_design_has_one_code_with_a_table(name: str, split: str) -> None:
    known = catalogue.protocol(name)
    brought = brought_by(known.params(n_clusters=3), split)
    own = [known.risks[code] for code in brought if code in known.risks]
    (design,) = (risk for risk in own if risk.level is RiskLevel.DESIGN)
    assert {"analyst", "party", "coordinator"} <= dict(design.readers).keys()


def test_the_worst_risk_comes_first() -> None:
    ordered = list(worst_first(ALL).values())
    assert [risk.harm for risk in ordered] == sorted(risk.harm for risk in ordered)


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_no_other_value_avoids_a_risk_of_the_defaults(name: str, split: str) -> None:
    kind = catalogue.protocol(name).params
    usual = brought_by(kind(n_clusters=3), split)
    avoided: set[str] = set()
    for changed in other_values(kind):
        try:
            brought = brought_by(kind(n_clusters=3, **changed), split)
        except (InvalidParameters, ValueError):
            continue
        if brought < usual:
            avoided |= usual - brought
    assert avoided == NOT_BY_A_DEFAULT.get((name, split), set())


def brought_by(params: Params, split: str) -> set[str]:
    layout, known = LAYOUTS[split], catalogue.find_protocol(params)
    known.check_params(params, layout)
    known.check_opening(params, layout)
    return set(known.risks_of(params, layout))


def other_values(kind: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Each parameter with each value of a few; of parts, each of theirs."""
    for name, info in kind.model_fields.items():
        annotation = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from ({name: part} for part in other_values(annotation))
        elif annotation is bool:
            yield from ({name: value} for value in (False, True))
        elif annotation is int and name != "n_clusters":
            yield from ({name: value} for value in (1, 2, 3, 5))
        for each in (annotation, *get_args(annotation)):
            if get_origin(each) is Literal:
                yield from ({name: value} for value in get_args(each))


FUZZY = {"algorithm": "fuzzy_cmeans"}
SMALL = {"small_cohorts": "allow"}
TWO = {"allow_two_parties": True}
GIVEN = {"init": "given", "initial_centroids": [[1, 2], [3, 4]]}
GIVEN_COLUMNS = {"init": "given", "initial_centroids": [[1, 2, 3], [3, 4, 5]]}
UNIFORM = {"anchor": {"kind": "uniform"}, "scaling": "none"}
DECLARED = {"anchor": {"kind": "uniform", "ranges": "declared"}, "scaling": "none"}
BY_ECDH = {"alignment": {"method": "ecdh"}}
BY_POSITION = {"alignment": {"method": "position"}}
OWN = "start-shows-own-clusters"
SUBTRACTED, UNMIXED = "members-can-be-subtracted", "uniform-anchors-can-be-unmixed"
COMPUTED, PAIR = "house.rows-can-be-computed", "house.two-parties"
GUESSED = "house.common-ids house.guessed-people"
RANGES, PLACES = "house.pooled-ranges", "house.rows-by-position"
START, FEATURES = "given-start-shows-rows", "codes-give-features"
BROUGHT: list[tuple[str, tuple[int, ...], dict[str, Any], str]] = [
    ("llf", (3,), {}, OWN),
    ("llf", (3,), {"init": "random_party"}, "start-shows-means-of-five-rows"),
    ("llf", (3,), {"init": "bounds"}, ""),
    ("llf", (3,), GIVEN, START),
    ("llf", (3,), {**GIVEN, "publish": "sizes"}, START),
    ("llf", (4,), {"quorum": 3}, f"{OWN} {SUBTRACTED}"),
    ("llf", (3,), {"min_cluster_rows": 9}, f"{OWN} small-clusters-move"),
    ("llf", (3,), {"min_cluster_rows": 9, **FUZZY}, OWN),
    ("llf", (3,), {**FUZZY, **SMALL}, f"{OWN} {COMPUTED}"),
    ("llf", (3,), SMALL, OWN),
    ("llf", (2,), TWO, f"{OWN} {PAIR}"),
    ("llf", (2,), {**TWO, "scaling": "none"}, f"{OWN} {PAIR}"),
    ("llf", (1, 3), {}, ""),
    ("llf", (1, 3), FUZZY, "memberships-show-columns"),
    ("llf", (1, 3), {**FUZZY, **SMALL}, "memberships-show-columns"),
    ("llf", (1, 3), GIVEN_COLUMNS, START),
    ("llf", (1, 2), TWO, PAIR),
    ("llf", (1, 3), BY_ECDH, GUESSED),
    ("llf", (1, 3), BY_POSITION, PLACES),
    ("dc", (3,), {}, ""),
    ("dc", (1, 3), {}, ""),
    ("dc", (5, 2), {}, ""),
    ("dc", (2,), {}, PAIR),
    ("dc", (2, 2), {}, PAIR),
    ("dc", (3,), UNIFORM, f"{UNMIXED} {RANGES}"),
    ("dc", (2,), {**UNIFORM, "scaling": "shared"}, f"{UNMIXED} {RANGES} {PAIR}"),
    ("dc", (1, 3), UNIFORM, UNMIXED),
    ("dc", (2,), DECLARED, UNMIXED),
    ("dc", (3,), {"dimensions": "all"}, "all-dimensions-are-sent"),
    ("dc", (1, 4), {"dimensions": "all"}, "all-dimensions-are-sent"),
    ("dc", (1, 3), BY_ECDH, GUESSED),
    ("dc", (1, 3), BY_POSITION, PLACES),
    ("dc", (3,), BY_POSITION, ""),
    ("omnifc", (5,), {}, ""),
    (
        *("omnifc", (5,), {"hide_segments": False, "scaling": "minmax"}),
        f"analyst-learns-segments-distances {RANGES}",
    ),
    ("fccm", (1, 3), {}, ""),
    ("fccm", (1, 3), SMALL, COMPUTED),
    ("fccm", (1, 3), BY_ECDH, GUESSED),
    ("fccm", (1, 3), BY_POSITION, PLACES),
    ("pqmds", (1, 2), {}, FEATURES),
    ("pqmds", (1, 2), {"sub_dim": 4, "coordinates": 1}, ""),
    ("pqmds", (1, 2), {"sub_dim": 4, "coordinates": 2}, FEATURES),
    ("pqmds", (1, 2), {"sub_dim": 1, "coordinates": 1}, "single-feature-codes"),
    (
        "pqmds",
        (1, 2),
        {"privacy": {"mechanism": "laplace"}},
        "noise-covers-one-row-once",
    ),
    ("pqmds", (1, 2), BY_ECDH, f"{FEATURES} {GUESSED}"),
    ("pqmds", (1, 2), BY_POSITION, f"{FEATURES} {PLACES}"),
]


@pytest.mark.parametrize(("name", "cells", "values", "codes"), BROUGHT)
def test_parameters_bring_these_risks_and_no_others(
    name: str, cells: tuple[int, ...], values: dict[str, Any], codes: str
) -> None:
    """Beside what is so by design, and what all others together learn of one party."""
    known = catalogue.protocol(name)
    params = catalogue.parse_params(name, {"n_clusters": 2, **values})
    sentences = {**known.risks, **RISKS}
    designs = {c for c, risk in sentences.items() if risk.level is RiskLevel.DESIGN}
    beside = set(known.risks_of(params, Layout.lattice(*cells))) - designs
    columns_of_llf = name == "llf" and cells[0] == 1
    assert beside == {*codes.split(), *(() if columns_of_llf else ("collusion",))}
