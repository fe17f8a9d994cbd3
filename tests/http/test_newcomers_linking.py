"""A newcomer links people without a common id, by what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support import warm
from support.analyst_process import COTERIE, Analyst
from support.terminal import read

HOSPITALS = {"r1c1": "north", "r1c2": "south"}


class Shell:
    """Runs commands in a folder, as a newcomer types them."""

    def __init__(self, folder: Path, analyst: Analyst) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "COTERIE_HOME": str(folder / "home"),
            "COTERIE_URL": analyst.url,
            "COTERIE_KEY": analyst.key,
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*warm.command(COTERIE), *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str) -> tuple[str, str]:
        """Return what a command prints, and what it says beside it."""
        with self.start(*words) as command:
            printed, said = command.communicate(timeout=120)
        assert command.returncode == 0, said
        return printed, said


def labels(path: Path) -> list[int]:
    return [int(row["label"]) for row in read(path)]


def run_words(letter: str, table: str) -> Sequence[str]:
    """Return the command of a letter, with the table in its place."""
    (line,) = re.findall(r"coterie (party run .*)", letter)
    return [table if word == "TABLE" else word for word in shlex.split(line)]


def test_people_are_linked_by_what_the_commands_print(
    tmp_path: Path, analyst: Analyst
) -> None:
    shell = Shell(tmp_path, analyst)
    shell("example", "made")
    keys, said = shell("table", "made/people/north.csv", "--link")
    (tmp_path / "keys.txt").write_text(keys)
    assert "to admit them: --guard ids_per_row=12" in said
    _, said = shell(
        *("session", "create", "People", "--protocol", "pqmds", "--column-groups", "2"),
        *("--param", "n_clusters=3", "--match-key", "@keys.txt", "--invitations", "."),
    )
    assert "to admit them: --guard ids_per_row=12" in said
    codes = re.findall(r"accept the risk (\S+)\.$", said, re.MULTILINE)
    risks = [word for code in codes for word in ("--accept-risk", code)]
    tables = {slot: f"made/people/{name}.csv" for slot, name in HOSPITALS.items()}
    shown, _ = shell("party", "check", "@r1c1.invitation", "--data", tables["r1c1"])
    assert "match keys, with their values of the first rows" in shown
    assert "warning" not in shown
    _, said = shell("party", "join", "@r1c1.invitation", *risks)
    assert "--guard ids_per_row=12 --data FILE\n" in said
    running = []
    for slot, table in tables.items():
        words = run_words((tmp_path / f"{slot}.md").read_text(), table)
        running.append(shell.start(*words, *risks, "--labels", f"{slot}.csv"))
    for command in running:
        _, said = command.communicate(timeout=300)
        assert command.returncode == 0, said
        assert "linked rows: 85 to 90 % of the smallest table" in said
    north, south = (labels(tmp_path / f"{slot}.csv") for slot in HOSPITALS)
    truth = [
        (int(row["north"]) - 1, int(row["south"]) - 1)
        for row in read(tmp_path / "made/people/truth.csv")
    ]
    right = [(n, s) for n, s in truth if north[n] >= 0 and south[s] >= 0]
    assert all(north[n] == south[s] for n, s in right)
    linked = sum(label >= 0 for label in north)
    recall, precision = len(right) / len(truth), len(right) / linked
    sys.stdout.write(f"session: recall {recall:.3f}, precision {precision:.4f}\n")
    assert recall >= 0.95
    assert precision >= 0.999
