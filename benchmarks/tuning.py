"""Writes docs/tuning.md: the settings that only those who look for a fault touch.

    python -m benchmarks.tuning

A test holds the page against what this prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from analyst_service.configuration.settings import Settings
from analyst_service.secret_files import variable
from benchmarks.messages import HEADER, row

PAGE = Path(__file__).parents[1] / "docs" / "tuning.md"
_TITLES = {False: "Limits", True: "Times"}
_TIMES = ("_seconds", "_attempts")


def page() -> str:
    """Return the text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Tuning"
    yield ""
    yield "Written by `python -m benchmarks.tuning`."
    yield ""
    yield (
        "An analyst runs well with these as they are. They are environment variables like "
        "[all settings](administrator.md#settings); `coterie config check` prints which "
        "are in force. Limits are each process's own: three processes let three times as "
        "much through."
    )
    schema = Settings.model_json_schema()["properties"]
    shown = {name: field for name, field in schema.items() if field.get("tuning")}
    for is_time, title in _TITLES.items():
        yield from ("", f"## {title}", "", *HEADER)
        for name, field in shown.items():
            if _is_time(name) is is_time:
                yield row(variable(name), field)


def _is_time(name: str) -> bool:
    """Return whether a setting says when or how often, rather than how much."""
    return name.endswith(_TIMES) and not name.startswith(("stranger_", "body_"))


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
