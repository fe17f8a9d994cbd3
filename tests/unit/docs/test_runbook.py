"""docs/runbook.md: every symptom is what a program says."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "runbook.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| `")
]
# Words of a server or of a system, and what a person's own names stand for.
_OTHERS = re.compile(
    r"role .*|.*is not permitted to log in|password authentication failed"
    r"|too many clients already|Connection refused|SQLSTATE 57P01|SQLITE_BUSY|for north|failure|SIGKILL|ends on"
)
# Where a program puts a word into its sentence.
_PARTS = r" ?…:? ?|: |; |\(E\w+\)\.?|signal 9 \(|^not |^The analyst (?=cannot)"


@cache
def source() -> str:
    """All that our programs say, with texts of several lines joined."""
    packages = ("analyst_service", "party_sdk", "clustering_protocols")
    files = [path for each in packages for path in (ROOT / each).rglob("*.py")]
    text = "\n".join(path.read_text() for path in [*files, ROOT / "docker/alerts.yml"])
    return re.sub(r'"\s*\n\s*f?"', "", text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_a_symptom_is_what_a_program_says(row: list[str]) -> None:
    for quoted in re.findall(r"`([^`]+)`", row[0]):
        for part in re.split(_PARTS, quoted):
            words = part.strip(" .)")
            if words and not _OTHERS.fullmatch(words):
                assert words in source(), words
