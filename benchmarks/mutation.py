"""Whether the tests notice small faults: a random sample of mutants of chosen modules.

    python -m benchmarks.mutation [--module PATH …] [--mutants N] [--seed SEED]
                                  [--timeout SECONDS] [--jobs N]

Each mutant is one change of one module (``a + b`` to ``a - b``, a loop of no turns, a
number one larger), in a copy of the tree; the module's tests run on it until one fails.

killed     a test failed.
timed out  the tests did not end in time: somebody would notice, so it counts as killed.
survived   all tests passed. Each survivor is printed with its place: a test is missing,
           or the change makes no difference.

Ends with 1 if less than 84 % of all mutants are killed. ``mutation.toml`` says
which tests should notice the faults of which module.

The operators are cosmic-ray's; none changes text. A change is not drawn if no test can
notice it or if it leaves the module's own behaviour as it is: annotations, decorators
with their flags, equality instead of identity. Nor are bit operators drawn in place of
arithmetic: they fail on every float.
"""

from __future__ import annotations

import argparse
import ast
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.testing import run_tests
from cosmic_ray.util import restore_contents
from cosmic_ray.work_item import TestOutcome

GOAL: Final = 0.84
MODULES: Final[Mapping[str, Sequence[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text()
)
ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("analyst_service", "clustering_protocols", "party_sdk")

_LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".venv",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "coterie-demo",
    "*.library",
)
_ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
_BITS = {"RShift", "LShift", "BitOr", "BitAnd", "BitXor"}
_ALIKE = ("Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq")

Position = tuple[int, int]
Verdict = Literal["killed", "timed out", "survived"]


class Mutant(NamedTuple):
    """One change of one module: its code with the change."""

    module: str
    code: str


# Drawing


def draw(
    module: str, source: str, n_mutants: int, rng: np.random.Generator
) -> list[Mutant]:
    """Return at most n mutants of a module, no two alike.

    Places are drawn first and then a change of each, so that an operator with eleven
    replacements is not drawn eleven times as often as one that has a single one.
    """
    places = _operators_by_place(source)
    found: dict[str, Mutant] = {}
    while places and len(found) < n_mutants:
        for row, column in rng.permutation(sorted(places)).tolist():
            place = row, column
            changes = places[place]
            operator, occurrence = changes.pop(int(rng.integers(len(changes))))
            if not changes:
                del places[place]
            code = mutate_code(source, get_operator(operator)(), occurrence)
            if code is not None and _is_another_program(source, code):
                found.setdefault(code, Mutant(module, code))
            if len(found) == n_mutants:
                break
    return list(found.values())


def _operators_by_place(source: str) -> dict[Position, list[tuple[str, int]]]:
    """Return by place the operators that change it, each with its occurrence there."""
    skipped = list(_skipped(source))
    nodes = list(ast_nodes(get_ast(source)))
    places = defaultdict(list)
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments() or _is_left_out(name):
            continue
        positions = (
            begin for node in nodes for begin, _ in operator().mutation_positions(node)
        )
        for occurrence, begin in enumerate(positions):
            if not any(low <= begin < high for low, high in skipped):
                places[begin].append((name, occurrence))
    return places


def _is_left_out(name: str) -> bool:
    _, *change = name.split("_")
    bits_for_arithmetic = set(change[:1]) <= _ARITHMETIC and set(change[1:]) & _BITS
    return name.endswith(_ALIKE) or bool(bits_for_arithmetic)


def _skipped(source: str) -> Iterator[tuple[Position, Position]]:
    """Yield where annotations and decorators begin and end."""
    lines = source.splitlines()

    def at(line: int, offset: int) -> Position:
        """Return a place in characters; the parser counts bytes."""
        return line, len(lines[line - 1].encode()[:offset].decode())

    for node in ast.walk(ast.parse(source)):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for part in [*parts, *getattr(node, "decorator_list", [])]:
            if part is not None:
                shift = part not in parts  # an @ stands before a decorator
                begin = at(part.lineno, part.col_offset - shift)
                yield begin, at(part.end_lineno, part.end_col_offset)


def _is_another_program(source: str, code: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as in the tests
        try:
            compile(code, "mutant", "exec", dont_inherit=True)
        except (SyntaxError, SyntaxWarning):
            return False
    return ast.dump(ast.parse(source)) != ast.dump(ast.parse(code))


# Running


class Copy:
    """A copy of the tree, in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        shutil.copytree(ROOT, self.root, ignore=_LEFT_OUT)
        for package in (*PACKAGES, "tests"):  # a mutant's hash differs: compiled anew
            mode = PycInvalidationMode.CHECKED_HASH
            compile_dir(self.root / package, quiet=2, invalidation_mode=mode)
        settings = (f"PYTHONPATH={self.root}", "CC=none")  # kernels run in numpy
        self._python = ["env", f"--chdir={self.root}", *settings, sys.executable]
        names = ", ".join(PACKAGES)
        files = f"*(m.__file__ for m in ({names})), sep='\\n'"
        program = [*self._python, "-c", f"import {names}; print({files})"]
        told = subprocess.check_output(program, text=True)
        if not all(line.startswith(str(self.root)) for line in told.splitlines()):
            raise RuntimeError("the tests would import another tree than the copy")

    def verdict(self, tests: Sequence[str], timeout: float) -> tuple[Verdict, str]:
        """Return what the tests find of the code as it stands, and what they print.

        tests: ends of their paths below any layer, such as ``llf/test_rounds.py``.
        """
        program = [*self._python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        files = [str(next(self.root.glob(f"tests/**/{name}"))) for name in tests]
        outcome, told = run_tests(shlex.join([*program, *files]), timeout)
        if outcome is TestOutcome.INCOMPETENT:
            raise RuntimeError(f"the tests could not be run: {told}")
        if outcome is TestOutcome.SURVIVED:
            return "survived", told
        return ("timed out" if told == "timeout" else "killed"), told

    def try_mutant(self, mutant: Mutant, timeout: float) -> Verdict:
        """Return what became of a mutant."""
        file = self.root / mutant.module
        with restore_contents(file):
            file.write_text(mutant.code)
            return self.verdict(MODULES[mutant.module], timeout)[0]


def measure(
    module: str, n_mutants: int, seed: int, copies: Sequence[Copy], timeout: float
) -> list[tuple[Mutant, Verdict]]:
    """Return a module's mutants and what became of them, and print them.

    copies: of the tree; each is lent to one mutant at a time.
    """
    tests = MODULES[module]
    unchanged, told = copies[0].verdict(tests, timeout)
    if unchanged != "survived":
        sys.exit(f"{told}\n{' '.join(tests)}: {unchanged} without any mutant")
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def find_verdict(mutant: Mutant) -> Verdict:
        copy = free.get()
        try:
            return copy.try_mutant(mutant, timeout)
        finally:
            free.put(copy)

    # a module's sample does not depend on which others are measured
    rng = np.random.default_rng([seed, *module.encode()])
    mutants = draw(module, (ROOT / module).read_text(), n_mutants, rng)
    with ThreadPoolExecutor(len(copies)) as pool:
        found = list(zip(mutants, pool.map(find_verdict, mutants), strict=True))
    counts = Counter(verdict for _, verdict in found)
    verdicts = [counts[verdict] for verdict in get_args(Verdict)]
    print(f"{module:60}", *(f"{count:>9}" for count in verdicts), flush=True)
    return found


def main() -> None:
    """Print what became of a sample of mutants; end with 1 below the goal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--module", action="append", choices=MODULES, metavar="PATH")
    parser.add_argument("--mutants", type=int, default=20, help="of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=600.0, help="in seconds")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print(f"seed {given.seed}, at most {given.mutants} mutants of each module\n")
    print(f"{'':60}", *(f"{verdict:>9}" for verdict in get_args(Verdict)))
    found: list[tuple[Mutant, Verdict]] = []
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder, str(number))) for number in range(given.jobs)]
        for module in given.module or MODULES:
            found += measure(module, given.mutants, given.seed, copies, given.timeout)
    for mutant, verdict in found:
        if verdict == "survived":
            before = (ROOT / mutant.module).read_text().splitlines()
            change = unified_diff(before, mutant.code.splitlines(), n=0, lineterm="")
            print("", mutant.module, *list(change)[2:], sep="\n")
    share = sum(verdict != "survived" for _, verdict in found) / len(found)
    print(f"\n{share:.1%} of {len(found)} mutants killed; goal {GOAL:.0%}")
    sys.exit(share < GOAL)


if __name__ == "__main__":
    main()
