"""docs/tuning.md is what the settings say."""

from __future__ import annotations

from benchmarks import tuning


def test_the_page_is_what_the_settings_say() -> None:
    assert tuning.PAGE.read_text() == tuning.page()
