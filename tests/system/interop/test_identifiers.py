"""Ids and steps of match keys say the same in TypeScript as in Python."""

import json
import sys
import unicodedata

import pytest

from clustering_protocols.shared_stages.alignment.identifiers import normalise_id
from clustering_protocols.shared_stages.alignment.match_keys import build_step_function
from tests.system.interop.client_process import require_client, run_client

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


KEY_STEPS = [
    *("date", "year", "month", "day", "year-month", "month-day"),
    *("sorted-names", "first:3", "digits", "no-punctuation", "zero-pad:12"),
]
CELLS = [
    *(f"{sign}b a{sign}\u0308c 1" for sign in EVERY_SIGN),
    *("1987-02-03", "1987/2/3 t", "3.2.1987", "13.2.1987", "2.13.1987", "19870203"),
    *("1987-02-30", "29.02.1900", "29.02.2000", "1700-01-01", "1.1.2200", "03021987"),
    *(
        "\u0661\u0669\u0668\u0667-1-2t\u2028",
        "1987-1-2t\n",
        "1987-1-2x",
        "87-1-2",
        "0-1-1987",
    ),
    *("20011999", "21991999", "1999-12-31 23:59", "\U0001d7d9.1.1987", ""),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """What the client makes of all names and cells, for each of the steps."""
    require_client()
    given = tmp_path_factory.mktemp("names") / "names.json"
    given.write_text(json.dumps([NAMES, STEPS, CELLS, KEY_STEPS]), encoding="utf-8")
    script = (
        "import fs from 'node:fs';"
        "import { normalisedId } from './src/alignment/identifiers.ts';"
        "import { takeStep } from './src/alignment/match-keys/steps.ts';"
        "const [names, forms, cells, steps] ="
        f" JSON.parse(fs.readFileSync({json.dumps(str(given))}));"
        "const ids = forms.map((form) => names.map((name) => normalisedId(name, form)));"
        "const keys = steps.map((step) => cells.map((cell) => takeStep(cell, step)));"
        "process.stdout.write(JSON.stringify({ ids, keys }));"
    )
    made: dict[str, list[list[str]]] = json.loads(
        run_client("--input-type=module", "--eval", script)
    )
    return made


def test_ids_are_the_same(found: dict[str, list[list[str]]]) -> None:
    for steps, made in zip(STEPS, found["ids"], strict=True):
        expected = [normalise_id(name, steps) for name in NAMES]
        pairs = zip(NAMES, made, expected, strict=True)
        assert [pair for pair in pairs if pair[1] != pair[2]] == [], steps


def test_values_of_match_keys_are_the_same(found: dict[str, list[list[str]]]) -> None:
    for step, made in zip(KEY_STEPS, found["keys"], strict=True):
        pairs = zip(CELLS, made, map(build_step_function(step), CELLS), strict=True)
        assert [pair for pair in pairs if pair[1] != pair[2]] == [], step
