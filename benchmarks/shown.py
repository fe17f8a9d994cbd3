"""Writes tables of methods, and of who learns what, into README and docs.

    python -m benchmarks.shown

Protocols and releases declare what they disclose (`ClusteringProtocol.disclosures`). A
test checks that the tables are current, and that each example of each protocol is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from clustering_protocols.catalogue import catalogue, parse_params, protocol
from clustering_protocols.contract.disclosures import (
    SENTENCES,
    Disclosure,
    Kind,
    Reader,
    disclosures_of_evaluation,
    disclosures_of_preparation,
    disclosures_of_release,
    kinds_read_by,
)
from clustering_protocols.terms.preparation import ColumnPlan, Preparation, Treatment
from clustering_protocols.terms.schema import Field, Schema
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout
from party_sdk.advice import COLUMNS, comparison_row

ROOT: Final = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- shown -->", "<!-- end of shown -->"
ROWS_SPLIT, COLUMNS_SPLIT = Layout.lattice(3), Layout.lattice(1, 3)
_HEAD: Final = (
    "| protocol or release | analyst and coordinator | parties of the same columns | "
    "every party |\n|---|---|---|---|"
)


class Way(NamedTuple):
    """A protocol with parameters, and how rows and columns are split."""

    name: str
    variant: str
    params: dict[str, Any]
    layout: Layout

    @property
    def shown(self) -> frozenset[Disclosure]:
        """Return what the protocol shows to whom."""
        params = parse_params(self.name, self.params)
        return protocol(self.name).disclosures(params, self.layout)


_K: Final = {"n_clusters": 3}
_FUZZY: Final = _K | {"algorithm": "fuzzy_cmeans"}
_ALLOW: Final = {"small_cohorts": "allow"}
_SIZES: Final = _K | {"publish": "sizes"}
_PLACES: Final = _K | {"output": "coordinates"}
_UNPOOLED: Final = {
    "scaling": "none",
    "anchor": {"kind": "uniform", "ranges": "declared"},
}
DEFAULTS: Final = (
    Way("dc", "", _K, ROWS_SPLIT),
    Way("llf", ", rows", _K, ROWS_SPLIT),
    Way("llf", ", columns", _K, COLUMNS_SPLIT),
    Way("fccm", "", _K, COLUMNS_SPLIT),
    Way("omnifc", "", _K, ROWS_SPLIT),
    Way("pqmds", "", _K, COLUMNS_SPLIT),
    Way("dummy", "", _K, ROWS_SPLIT),
    Way("mixture", "", _K, ROWS_SPLIT),
    Way("describe", "", {}, ROWS_SPLIT),
    Way("cohort", "", {}, COLUMNS_SPLIT),
)
OTHERS: Final = (
    Way("dc", ", nothing pooled", _K | _UNPOOLED, ROWS_SPLIT),
    Way("dc", ", `dimensions` all", _K | {"dimensions": "all"}, ROWS_SPLIT),
    Way("dc", ", `coordinates` or `predictor`", _PLACES, ROWS_SPLIT),
    Way("dc", ", `coordinates` over columns", _PLACES, COLUMNS_SPLIT),
    Way("llf", ", rows, fuzzy, `small_cohorts` allow", _FUZZY | _ALLOW, ROWS_SPLIT),
    Way("fccm", ", `small_cohorts` allow", _K | _ALLOW, COLUMNS_SPLIT),
    Way("llf", ", rows, `publish` sizes", _SIZES, ROWS_SPLIT),
    Way("llf", ", rows, `publish` nothing", _K | {"publish": "nothing"}, ROWS_SPLIT),
    Way("mixture", ", `publish` sizes", _SIZES, ROWS_SPLIT),
    Way("llf", ", columns, fuzzy", _FUZZY, COLUMNS_SPLIT),
    Way("omnifc", ", nothing pooled", _K | {"scaling": "unit_norm"}, ROWS_SPLIT),
    Way("pqmds", ", one coordinate", _K | {"coordinates": 1}, COLUMNS_SPLIT),
)


def releases() -> list[tuple[str, frozenset[Disclosure]]]:
    """Return what profiles, fillings and runs show in addition to a protocol."""
    schema = Schema(fields=(Field(name="x"),))
    plan = ColumnPlan(
        schema, Preparation(fields=(Treatment(name="x", missing="mean"),))
    )

    def profiles(readers: Literal["members", "everybody"]) -> frozenset[Disclosure]:
        return disclosures_of_release(Release(profiles=readers), ROWS_SPLIT)

    return [
        ("profiles `members`", profiles("members")),
        ("profiles `everybody`", profiles("everybody")),
        ("fillings, site effects", disclosures_of_preparation([plan], ROWS_SPLIT)),
        ("several runs", disclosures_of_evaluation(Evaluation(n_clusters=(2, 3)))),
    ]


def table(ways: Sequence[Way]) -> str:
    """Return the table of ways and of releases."""
    rows = [(f"`{way.name}`{way.variant}", way.shown) for way in ways]
    return "\n".join([_HEAD, *(_line(*row) for row in (*rows, *releases()))])


def _line(said: str, shown: frozenset[Disclosure]) -> str:
    cells = (_cell(kinds_read_by(shown, reader)) for reader in Reader)
    return f"| {said} | {' | '.join(cells)} |"


def _cell(kinds: frozenset[Kind]) -> str:
    return ", ".join(kind for kind in Kind if kind in kinds) or "–"


def kinds() -> str:
    """Return a list of the kinds, each with its sentence."""
    return "\n".join(f"- *{kind}*: {said}" for kind, said in SENTENCES.items())


def methods() -> str:
    """Return the table of all methods."""
    titles = ("split", "data", *COLUMNS)
    rows = [titles, ["---"] * len(titles)]
    for split in ("horizontal", "vertical", "mixed"):
        for name, known in catalogue().items():
            for method in known.methods:
                if split in method.partitionings:
                    cells = comparison_row(name, method, split)
                    rows.append((split, method.data, *cells))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def pages() -> dict[Path, str]:
    """Return by page what belongs between its marks."""
    return {
        ROOT / "README.md": table(DEFAULTS),
        ROOT / "docs" / "choosing.md": methods(),
        ROOT / "docs" / "security.md": f"{kinds()}\n\n{table((*DEFAULTS, *OTHERS))}",
    }


def written(page: str, content: str) -> str:
    """Return a page with the content between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(written(path.read_text(), content))
