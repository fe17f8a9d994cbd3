"""docs/security.md names every risk code of the catalogue, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from clustering_protocols import catalogue

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
KNOWN = {
    *catalogue.house_risks(),
    *(
        code
        for name, known in catalogue.catalogue().items()
        if known.methods
        for code in catalogue.new_risks(name)
    ),
}
CODE = re.compile(r"`((?:house|dc|llf|fccm|omnifc|pqmds)\.[a-z]+(?:-[a-z]+)*)`")


def test_every_code_has_its_place_and_every_place_its_code() -> None:
    assert set(CODE.findall(PAGE)) == KNOWN
