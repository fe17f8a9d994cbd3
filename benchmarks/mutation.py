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
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import Final, Literal, get_args

import numpy as np
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one module: the line before and after it, and the whole code."""

    module: str
    line: int
    before: str
    after: str
    code: str = field(repr=False)


# Drawing


def draw(
    module: str, source: str, n_mutants: int, rng: np.random.Generator
) -> list[Mutant]:
    """Return at most n mutants of a module, no two alike.

    Places are drawn first and then a change of each, so that an operator with eleven
    replacements is not drawn eleven times as often as one that has a single one.
    """
    places = _places(source)
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
                found.setdefault(code, _mutant(module, source, code))
            if len(found) == n_mutants:
                break
    return list(found.values())


def _places(source: str) -> dict[Position, list[tuple[str, int]]]:
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


def _mutant(module: str, source: str, code: str) -> Mutant:
    old, new = source.splitlines(), code.splitlines()
    line = next(
        (n for n, pair in enumerate(zip(old, new, strict=False)) if len(set(pair)) > 1),
        min(len(old), len(new)) - 1,
    )
    return Mutant(
        module=module,
        line=line + 1,
        before=old[line].strip(),
        after=new[line].strip(),
        code=code,
    )


# Running


class Copy:
    """A copy of the tree, in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        shutil.copytree(ROOT, self.root, ignore=_LEFT_OUT)
        for package in (*PACKAGES, "tests"):  # a mutant's hash differs: compiled anew
            mode = PycInvalidationMode.CHECKED_HASH
            compile_dir(self.root / package, quiet=2, invalidation_mode=mode)
        self.environment = os.environ | {
            "PYTHONPATH": str(self.root),  # before the installed packages
            "CC": "none",  # kernels run in numpy, where mutants change them
            "PYTHONDONTWRITEBYTECODE": "1",  # two mutants may have one size and second
        }
        self._check_imports()

    def _check_imports(self) -> None:
        names = ", ".join(PACKAGES)
        files = f"*(m.__file__ for m in ({names})), sep='\\n'"
        program = [sys.executable, "-c", f"import {names}; print({files})"]
        told = subprocess.run(
            program,
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        if not all(line.startswith(str(self.root)) for line in told.splitlines()):
            raise RuntimeError("the tests would import another tree than the copy")

    def passes(self, tests: Sequence[str], timeout: float) -> tuple[bool | None, str]:
        """Return whether the tests pass, None if time ran out, and what was printed.

        tests: ends of their paths below any layer, such as ``llf/test_rounds.py``.
        """
        program = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        files = [next(self.root.glob(f"tests/**/{name}")) for name in tests]
        process = subprocess.Popen(
            [*program, *files],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that its children can be ended with it
        )
        try:
            told, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        return process.returncode == 0, told

    def verdict(self, mutant: Mutant, timeout: float) -> Verdict:
        """Return what became of a mutant."""
        file = self.root / mutant.module
        source = file.read_text()
        file.write_text(mutant.code)
        try:
            passed, _ = self.passes(MODULES[mutant.module], timeout)
        finally:
            file.write_text(source)
        return {None: "timed out", True: "survived", False: "killed"}[passed]


def measure(
    module: str, n_mutants: int, seed: int, copies: Sequence[Copy], timeout: float
) -> list[tuple[Mutant, Verdict]]:
    """Return a module's mutants and what became of them, and print them.

    copies: of the tree; each is lent to one mutant at a time.
    """
    tests = MODULES[module]
    passed, told = copies[0].passes(tests, timeout)
    if not passed:
        why = "take too long" if passed is None else "fail"
        sys.exit(f"{told}\n{' '.join(tests)} {why} without any mutant")
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def find_verdict(mutant: Mutant) -> Verdict:
        copy = free.get()
        try:
            return copy.verdict(mutant, timeout)
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
            print(f"\n{mutant.module}:{mutant.line}")
            print(f"  - {mutant.before}\n  + {mutant.after}")
    share = sum(verdict != "survived" for _, verdict in found) / len(found)
    print(f"\n{share:.1%} of {len(found)} mutants killed; goal {GOAL:.0%}")
    sys.exit(share < GOAL)


if __name__ == "__main__":
    main()
