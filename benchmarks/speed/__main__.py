"""Measures every speed that has a goal, and prints it beside the goal.

    python -m benchmarks.speed [PART …] [--small]

sessions  ten parties, each in a process that begins with the session, beside pooled
          k-means.
kernels   passes over rows, distances of residues and masks, beside matrix products.
audit     of a party's own sums, at the hundredth round of 3,000 rows in ten clusters.
starts    CPU time until commands, an analyst and a worker answer.
rounds    CPU time of the analyst for each answer, of a hundred sessions at once.
answers   times of refusals for different reasons, and of pages of long lists.
upload    one upload of 256 MiB, beside a bare socket.

Ends with 1 if a goal is missed. Other work on the machine changes seconds; ratios are
of runs that alternate, and change less.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Final

from benchmarks.speed.figures import Part

PARTS: Final = (
    "sessions",
    "kernels",
    "audit",
    "starts",
    "rounds",
    "answers",
    "upload",
)


def main() -> int:
    """Print every figure as a row of a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # argparse holds the empty list against the choices, too
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    parser.add_argument("--small", action="store_true", help="Sizes of a smoke test.")
    options = parser.parse_args()
    print("| | figure | at most | |\n|---|---|---|---|")
    missed = 0
    for name in options.parts or PARTS:
        part: Part = import_module(f"benchmarks.speed.{name}").figures
        for figure in part(small=options.small):
            print(figure, flush=True)
            missed += not figure.is_met
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
