"""What a shell offers on the tab key, asked for as shells ask."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from party_sdk.cli import main

BIN = Path(sys.executable).parent


def test_options_are_offered_without_reading_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setenv("COMP_WORDS", "coterie party run - --acc")
    monkeypatch.setenv("COMP_CWORD", "4")
    completion = BashComplete(main, {}, "coterie", "_COTERIE_COMPLETE").complete()
    assert "--accept" in completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_printed_script_is_one_of_its_shell(shell: str) -> None:
    made = subprocess.run(
        [BIN / "coterie"],
        env={"_COTERIE_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_COTERIE_COMPLETE" in made.stdout
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=made.stdout, text=True, check=True)
