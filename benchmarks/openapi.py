"""Writes spec/openapi.json: the API's description, from which clients are made.

    python -m benchmarks.openapi

Operations and components keep their names from release to release; a test holds the
page against what this prints, so that no function's name changes one unseen.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from analyst_service.app import create_app
from analyst_service.settings import Settings

PAGE: Final = Path(__file__).parents[1] / "spec" / "openapi.json"


def page() -> str:
    """Return the description without the version, which each build has of its own."""
    document = create_app(Settings()).openapi()
    document["info"].pop("version")
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
