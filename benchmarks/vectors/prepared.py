"""A session whose fields are of all types, and lack values: tables, terms, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks.vectors.forgery import Forger, hold, say, tell_all
from clustering_protocols.engine.packets import Packet
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from party_sdk.conformance.vectors import Refusal

_N_ROWS: Final = 24
_SCHEMA: Final = Schema.model_validate(
    {
        "fields": [
            {"name": "größe", "constraints": {"minimum": 0, "maximum": 250}},
            {
                "name": "besuche",
                "type": "integer",
                "constraints": {"minimum": 0, "maximum": 40},
            },
            {
                "name": "stufe",
                "type": "string",
                "categories": ["I", "II", "III", "IV"],
                "categoriesOrdered": True,
            },
            {"name": "ort", "type": "string", "categories": ["Ulm", "Köln", "Aachen"]},
            {"name": "raucht", "type": "boolean"},
            {"name": "aufnahme", "type": "date"},
        ]
    }
)
_PREPARATION: Final = Preparation.model_validate(
    {
        "fields": [
            {"name": "größe", "missing": "mean", "log1p": True, "weight": 0.5},
            {"name": "besuche", "missing": "median"},
            {"name": "ort", "missing": "most_frequent", "indicator": True},
            {"name": "raucht", "missing": "most_frequent", "weight": 2.0},
            {"name": "aufnahme", "missing": "drop"},
        ]
    }
)
SECTIONS: Final[dict[str, Any]] = {
    "dictionary": [_SCHEMA],
    "preparation": [_PREPARATION],
}


def draw_fields(slots: Sequence[str], seed: int) -> dict[str, MatrixSource]:
    """Return a table for each slot; the last one knows of few who of them smokes."""
    drawn = np.random.default_rng(seed)
    tables = {slot: _draw(drawn) for slot in slots}
    tables[slots[-1]][8:, 4] = np.nan
    return {
        slot: MatrixSource(rows, _SCHEMA.names, gaps=True)
        for slot, rows in tables.items()
    }


def _draw(drawn: np.random.Generator) -> FloatArray:
    group = np.arange(_N_ROWS) % 3
    rows = np.column_stack(
        [
            np.round(drawn.normal(150 + 20 * group, 5), 1),
            drawn.poisson(4 + 8 * group),
            np.minimum(group + drawn.integers(0, 2, _N_ROWS), 3),
            drawn.integers(0, 3, _N_ROWS),
            drawn.integers(0, 2, _N_ROWS),
            18_000 + drawn.integers(0, 900, _N_ROWS),
        ]
    ).astype(np.float64)
    for place, column in enumerate((0, 1, 3, 4, 5)):
        rows[[place, 20 - place], column] = np.nan
    return rows


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return them, of a member of three that fill what is missing."""
    return [
        *forger.change(
            "add-up",
            "protocol-failed",
            {
                "one value more": lambda p: tell_all(_add(p)),
                "a phase was left out": lambda p: tell_all(say(p, phase=3)),
            },
            nth=1,
        ),
        *forger.change(
            "add-up",
            "invalid-array",
            {"a total of fewer fields": lambda p: tell_all(_cut(p))},
            nth=1,
        ),
        *forger.change(
            "add-up",
            "protocol-failed",
            {"another sum of values": lambda p: tell_all(_add(p))},
            nth=2,
        ),
    ]


def _add(packet: Packet) -> Packet:
    total = packet.arrays["total"].copy()
    total[0] += np.uint64(1)
    return hold(packet, total=total)


def _cut(packet: Packet) -> Packet:
    return hold(packet, total=packet.arrays["total"][:3].copy())
