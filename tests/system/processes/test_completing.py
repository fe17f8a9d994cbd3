"""What a shell offers on the tab key, asked for as shells ask."""

import sys

import pytest
from click.shell_completion import BashComplete

from party_sdk.cli import main


def test_options_are_offered_without_reading_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setenv("COMP_WORDS", "coterie party run - --acc")
    monkeypatch.setenv("COMP_CWORD", "4")
    completion = BashComplete(main, {}, "coterie", "_COTERIE_COMPLETE").complete()
    assert "--accept" in completion
