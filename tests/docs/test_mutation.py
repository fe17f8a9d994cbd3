"""Which faults `python -m benchmarks.mutation` draws."""

from __future__ import annotations

import numpy as np

from benchmarks.mutants import ROOT, Mutant, draw
from benchmarks.mutation import MODULES

SOURCE = '''\
"""One more, or two."""
from functools import cache


@cache
def more(x: int | None, ü: str | int = "a") -> int | str:
    """Return 1 + 1."""
    y: int | float = x + 7
    return 3 if x is None else y
'''


def drawn(n: int, seed: int = 0, source: str = SOURCE) -> list[Mutant]:
    return draw("more.py", source, n, np.random.default_rng(seed))


def test_behaviour_is_changed_and_nothing_else() -> None:
    changed = {mutant.before for mutant in drawn(100)}
    assert changed == {"y: int | float = x + 7", "return 3 if x is None else y"}
    after = {mutant.after for mutant in drawn(100)}
    assert {"y: int | float = x - 7", "return 3 if x is not None else y"} <= after
    assert not any(">>" in line or "==" in line for line in after)


def test_each_mutant_is_unique_and_changes_one_line() -> None:
    mutants = drawn(100)
    assert len({mutant.code for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        compile(mutant.code, "mutant", "exec")
        lines = zip(SOURCE.splitlines(), mutant.code.splitlines(), strict=True)
        assert [n for n, (a, b) in enumerate(lines, 1) if a != b] == [mutant.line]


def test_a_seed_draws_equal_mutants_and_spreads_over_lines() -> None:
    assert drawn(3) == drawn(3)
    assert len({tuple(drawn(2, seed)) for seed in range(5)}) > 1
    assert {
        mutant.line for mutant in drawn(4, source="x = 1\ny = 2\nz = 3\nw = 4\n")
    } == {
        1,
        2,
        3,
        4,
    }


def test_modules_and_their_tests_are_there() -> None:
    for module, tests in MODULES.items():
        assert (ROOT / module).is_file()
        assert tests
        assert all((ROOT / path).is_file() for path in tests)
