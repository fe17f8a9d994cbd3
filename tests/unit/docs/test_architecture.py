"""docs/architecture.md names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_files_that_the_page_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    names = re.findall(r"`(\w+/[\w/]+(?:\.py|/))`", page)
    assert len(names) > 30
    assert not [name for name in names if not (ROOT / name).exists()]
