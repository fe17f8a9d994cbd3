"""Ids have the same normal form in TypeScript as in Python."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from clustering_protocols.shared_stages.alignment.identifiers import normalise_id
from tests.interop.client_process import require_client, run_client

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


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What the client makes of all names, for each of the steps."""
    require_client()
    given = tmp_path_factory.mktemp("names") / "names.json"
    given.write_text(json.dumps(NAMES), encoding="utf-8")
    script = (
        "import fs from 'node:fs';"
        "import { normalisedId } from './src/alignment/identifiers.ts';"
        f"const names = JSON.parse(fs.readFileSync({json.dumps(str(given))}));"
        f"const ids = {json.dumps(STEPS)}.map((steps) =>"
        " names.map((name) => normalisedId(name, steps)));"
        "process.stdout.write(JSON.stringify(ids));"
    )
    ids: list[list[str]] = json.loads(
        run_client("--input-type=module", "--eval", script)
    )
    return ids


@pytest.mark.parametrize("place", range(len(STEPS)), ids=map("+".join, STEPS))
def test_ids_are_the_same(found: list[list[str]], place: int) -> None:
    expected = [normalise_id(name, STEPS[place]) for name in NAMES]
    pairs = zip(NAMES, found[place], expected, strict=True)
    assert [pair for pair in pairs if pair[1] != pair[2]] == []
