"""What each target runs, and the modules of which mutants are made."""

import re
from pathlib import Path

import pytest
from support.repeats import NEVER_RUN

from benchmarks.mutation import MODULES

TESTS = Path(__file__).parents[2]


def test_what_runs_on_command_alone_has_a_case_that_always_runs(
    request: pytest.FixtureRequest,
) -> None:
    """Of what was collected with this test: all, where all tests run."""
    assert not request.config.stash[NEVER_RUN]


def test_make_test_runs_every_folder_but_that_of_real_processes() -> None:
    makefile = (TESTS.parent / "Makefile").read_text()
    [layers] = re.findall(r"^LAYERS := (.+)$", makefile, re.MULTILINE)
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}
    assert {f"tests/{name}" for name in folders - {"system"}} == set(layers.split())


@pytest.mark.parametrize("module", MODULES)
def test_mutants_are_made_of_modules_and_met_by_tests_that_exist(module: str) -> None:
    assert (TESTS.parent / module).exists()
    for file in MODULES[module]:
        assert len(list(TESTS.rglob(file))) == 1, file
