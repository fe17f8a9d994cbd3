"""Ids have the same normal form in TypeScript as in Python."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path

import pytest

from clustering_protocols.shared_stages.alignment.identifiers import normalise_id
from tests.interop.client_process import run_client

EVERY_SIGN = [
    sign
    for sign in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(sign) not in {"Cn", "Cs", "Co"}
]
STEPS = [
    ("nfkc", "casefold", "spaces", "strip"),
    ("nfc", "no-punctuation"),
    ("digits", "strip-zeros", "zero-pad:8"),
    (),
]
NAMES = [
    *(f"a{sign} 1" for sign in EVERY_SIGN),
    *("", " Größe\u2003 ΣΊΣΥΦΟΣ  ", "007", "0", "000", '["A", " b"]', '["A"]', '["x'),
]


@pytest.mark.parametrize("steps", STEPS, ids="+".join)
def test_ids_are_the_same(tmp_path: Path, steps: tuple[str, ...]) -> None:
    given = tmp_path / "names.json"
    given.write_text(json.dumps(NAMES), encoding="utf-8")
    script = (
        "import fs from 'node:fs';"
        "import { normalisedId } from './src/alignment/identifiers.ts';"
        f"const names = JSON.parse(fs.readFileSync({json.dumps(str(given))}));"
        f"const ids = names.map((name) => normalisedId(name, {json.dumps(steps)}));"
        "process.stdout.write(JSON.stringify(ids));"
    )
    found = json.loads(run_client("--input-type=module", "--eval", script))
    expected = [normalise_id(name, steps) for name in NAMES]
    assert [p for p in zip(NAMES, found, expected, strict=True) if p[1] != p[2]] == []
