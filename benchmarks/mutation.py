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
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import numpy as np

from benchmarks.mutants import ROOT, Copy, Mutant, Verdict, draw

GOAL = 0.84

MODULES: Final[Mapping[str, Sequence[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text()
)
Found = list[tuple[Mutant, Verdict]]


class Copies:
    """Copies of the tree, each lent to one mutant at a time."""

    def __init__(self, folder: Path, n_copies: int, timeout: float) -> None:
        self.timeout = timeout
        self.free: SimpleQueue[Copy] = SimpleQueue()
        for number in range(n_copies):
            self.free.put(Copy(folder / str(number)))

    def check(self, tests: Sequence[str]) -> None:
        """Stop if the tests fail, or take too long, without any mutant."""
        copy = self.free.get()
        passed, told = copy.passes(tests, self.timeout)
        self.free.put(copy)
        if not passed:
            why = "take too long" if passed is None else "fail"
            sys.exit(f"{told}\n{' '.join(tests)} {why} without any mutant")

    def verdict(self, mutant: Mutant) -> Verdict:
        """Return what became of a mutant."""
        copy = self.free.get()
        try:
            return copy.verdict(mutant, MODULES[mutant.module], self.timeout)
        finally:
            self.free.put(copy)


def measure(module: str, n_mutants: int, seed: int, copies: Copies, jobs: int) -> Found:
    """Return a module's mutants and what became of them, and print them."""
    source = (ROOT / module).read_text()
    # a module's sample does not depend on which others are measured
    rng = np.random.default_rng([seed, *module.encode()])
    mutants = draw(module, source, n_mutants, rng)
    copies.check(MODULES[module])
    with ThreadPoolExecutor(jobs) as pool:
        found = list(zip(mutants, pool.map(copies.verdict, mutants), strict=True))
    told = Counter(verdict for _, verdict in found)
    counts = (told["killed"], told["timed out"], told["survived"])
    print(f"{module:60}", *(f"{count:>9}" for count in counts), flush=True)
    return found


def print_survivors(found: Found) -> None:
    """Print every mutant that no test noticed."""
    for mutant, verdict in found:
        if verdict == "survived":
            print(f"\n{mutant.module}:{mutant.line}")
            print(f"  - {mutant.before}\n  + {mutant.after}")


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
    print(f"{'':60} {'killed':>9} {'timed out':>9} {'survived':>9}")
    found: Found = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        copies = Copies(folder, given.jobs, given.timeout)
        for module in given.module or MODULES:
            found += measure(module, given.mutants, given.seed, copies, given.jobs)
    print_survivors(found)
    share = sum(verdict != "survived" for _, verdict in found) / len(found)
    print(f"\n{share:.1%} of {len(found)} mutants killed; goal {GOAL:.0%}")
    sys.exit(share < GOAL)


if __name__ == "__main__":
    main()
