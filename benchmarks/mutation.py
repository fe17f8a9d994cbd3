"""Whether the tests notice small faults: a random sample of mutants of chosen modules.

    python -m benchmarks.mutation [--module PATH …] [--mutants N] [--seed SEED]
                                  [--timeout SECONDS] [--jobs N]

Each mutant is one change of one module (``a + b`` to ``a - b``, a loop of no turns, a
number one larger), in a copy of the tree; the module's tests run on it until one fails.

killed     a test failed.
timed out  the tests did not end in time: somebody would notice, so it counts as killed.
survived   all tests passed. Each is printed with its place: a test is missing, or the
           change makes no difference.

Ends with 1 if less than 84 % of all mutants are killed. ``MODULES`` says which tests
should notice the faults of which module.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from benchmarks.mutants import ROOT, Copy, Mutant, Verdict, draw

GOAL = 0.84

_VECTORS = "spec/test_vectors.py"
_SUMS = ("secrecy/test_sums.py", _VECTORS)
_LLF = ("llf/test_results.py",)
_OMNIFC = ("omnifc/test_field.py", "omnifc/test_secrecy.py")
_PQMDS = ("pqmds/test_pqmds.py", "pqmds/test_coordinates.py")
_DISHONEST = ("engine/test_dishonest_analyst.py",)
_TRANSCRIPT = ("engine/test_transcript.py", _VECTORS)
_STANDING = ("engine/test_standing.py",)
_FILLING = ("preparation/test_filling.py",)
_STAGES = ("preparation/test_stages.py", _VECTORS)
_INTERSECTION = (
    _VECTORS,
    "preparation/test_intersection_attacks.py",
    "preparation/test_intersection.py",
)
_PROFILES = ("profiling/test_sums.py",)
_MAGNITUDES = ("preparation/test_magnitudes.py",)
_MOMENTS = tuple(f"preparation/test_{n}.py" for n in ("moments", "sum_programs"))
_CLOSING = ("llf/test_figures.py", *_LLF, _VECTORS)
_ROUNDS = ("llf/test_rounds.py", _VECTORS)

_DISHONEST_ROWS = ("llf/test_dishonest_rows.py",)
_ROW_MARKS = ("party/test_row_marks.py",)
_SHOWN = ("party/test_shown.py",)
_HISTORY = ("engine/test_row_history.py",)

_MIXTURE = ("mixture/test_mixture.py", "mixture/test_solving.py")
MODULES: dict[str, Sequence[str]] = {
    "clustering_protocols/wire/states.py": ("service/test_sessions.py",),
    "clustering_protocols/algorithms/coincidence.py": (
        "algorithms/test_coincidence.py",
    ),
    "clustering_protocols/algorithms/lloyd.py": ("algorithms/test_kmeans.py",),
    "clustering_protocols/algorithms/oversampling.py": (
        "algorithms/test_oversampling.py",
    ),
    "clustering_protocols/algorithms/row_kernels.py": (
        *_LLF,
        "algorithms/test_kmeans.py",
    ),
    "clustering_protocols/protocols/dc/common_space.py": ("dc/test_mathematics.py",),
    "clustering_protocols/protocols/dc/maths.py": ("dc/test_mathematics.py",),
    "clustering_protocols/protocols/fccm/maths.py": (
        "fccm/test_results.py",
        "fccm/test_lanes.py",
    ),
    "clustering_protocols/protocols/llf/maths.py": (
        *_LLF,
        *_ROUNDS,
        *_CLOSING,
        "llf/test_split_columns.py",
    ),
    "clustering_protocols/protocols/llf/kernels.py": _LLF,
    "clustering_protocols/protocols/llf/rows_round.py": (
        *_CLOSING,
        "llf/test_steadiness.py",
        *_DISHONEST_ROWS,
    ),
    "clustering_protocols/contract/row_history.py": _HISTORY,
    "clustering_protocols/shared_stages/dominance.py": ("engine/test_dominance.py",),
    "clustering_protocols/quality/block_sums.py": (
        "quality/test_block_sums.py",
        *_CLOSING,
    ),
    "clustering_protocols/numerics/blocks.py": ("engine/test_blocks.py",),
    "clustering_protocols/protocols/omnifc/maths.py": _OMNIFC,
    "clustering_protocols/protocols/pqmds/maths.py": _PQMDS,
    "clustering_protocols/terms/roster_entries.py": (
        "secrecy/test_rosters.py",
        _VECTORS,
    ),
    "clustering_protocols/records/hash_chain.py": _TRANSCRIPT,
    "clustering_protocols/terms/signed_logs.py": ("party/test_proofs.py",),
    "clustering_protocols/contract/disclosures.py": (
        "docs/test_shown_tables.py",
        "engine/test_opening.py",
    ),
    "party_sdk/disclosures/known_rows.py": (
        "party/test_known_rows.py",
        *_ROW_MARKS,
        *_SHOWN,
    ),
    "party_sdk/disclosures/history.py": (
        *_SHOWN,
        "party/test_policy.py",
        "party/test_summed.py",
    ),
    "party_sdk/disclosures/uses.py": _SHOWN,
    # engine
    "clustering_protocols/engine/task_checks.py": (*_DISHONEST, *_TRANSCRIPT),
    "clustering_protocols/engine/analyst.py": (
        *_STANDING,
        *_DISHONEST,
        "engine/test_runs.py",
        *_TRANSCRIPT,
        "llf/test_rounds.py",
        "engine/test_simulation.py",
    ),
    "clustering_protocols/engine/session_state.py": (
        *_STANDING,
        *_TRANSCRIPT,
        *_STAGES,
        "llf/test_rounds.py",
        "engine/test_conformance.py",
    ),
    "clustering_protocols/engine/journal.py": (*_STANDING, *_DISHONEST, *_TRANSCRIPT),
    "clustering_protocols/engine/party.py": (
        *_STANDING,
        *_STAGES,
        *_DISHONEST,
        *_TRANSCRIPT,
    ),
    "clustering_protocols/engine/signatures.py": _TRANSCRIPT,
    "clustering_protocols/engine/stages.py": _TRANSCRIPT,
    "clustering_protocols/engine/transcript.py": (*_TRANSCRIPT, *_DISHONEST),
    # secrecy
    "clustering_protocols/secrecy/budget.py": ("secrecy/test_privacy.py",),
    "clustering_protocols/secrecy/envelopes.py": (
        "secrecy/test_envelopes.py",
        _VECTORS,
    ),
    "clustering_protocols/secrecy/field.py": _OMNIFC,
    "clustering_protocols/secrecy/fixed_point.py": _SUMS,
    "clustering_protocols/secrecy/identities.py": ("secrecy/test_identities.py",),
    "clustering_protocols/secrecy/keys.py": ("secrecy/test_envelopes.py", *_SUMS),
    "clustering_protocols/secrecy/masks.py": _SUMS,
    "clustering_protocols/secrecy/prime.py": _SUMS,
    "clustering_protocols/secrecy/ristretto.py": (
        "secrecy/test_ristretto.py",
        _VECTORS,
    ),
    "clustering_protocols/secrecy/tags.py": _SUMS,
    # preparation
    "clustering_protocols/shared_stages/alignment/__init__.py": _INTERSECTION,
    "clustering_protocols/shared_stages/alignment/digests.py": _STAGES,
    "clustering_protocols/shared_stages/row_selection.py": (
        "preparation/test_arrival.py",
    ),
    "clustering_protocols/shared_stages/imputation.py": _FILLING,
    "clustering_protocols/shared_stages/sums.py": _MOMENTS,
    "clustering_protocols/terms/preparation.py": (
        *_FILLING,
        "preparation/test_bounds.py",
    ),
    "clustering_protocols/shared_stages/alignment/identifiers.py": _INTERSECTION,
    "clustering_protocols/shared_stages/alignment/intersection.py": _INTERSECTION,
    "clustering_protocols/shared_stages/alignment/params.py": _INTERSECTION,
    "clustering_protocols/shared_stages/secrets.py": _STAGES,
    "clustering_protocols/shared_stages/statistics/by_leader.py": (*_STAGES, *_MOMENTS),
    "clustering_protocols/shared_stages/statistics/magnitudes.py": _MAGNITUDES,
    "clustering_protocols/shared_stages/statistics/moments.py": _MOMENTS,
    "clustering_protocols/shared_stages/statistics/__init__.py": _MOMENTS,
    "clustering_protocols/shared_stages/masked_sums.py": _SUMS,
    # profiles
    "clustering_protocols/shared_stages/profiles/totals.py": _PROFILES,
    "clustering_protocols/shared_stages/profiles/profile.py": _PROFILES,
    # what a party does in each protocol
    "clustering_protocols/protocols/dc/party.py": (
        "dc/test_guards.py",
        "dc/test_whole.py",
        _VECTORS,
    ),
    "clustering_protocols/protocols/dc/anchors.py": ("dc/test_guards.py",),
    "clustering_protocols/protocols/fccm/site_state.py": (
        "fccm/test_lying_about_starts.py",
        "fccm/test_lanes.py",
        "fccm/test_rounds.py",
    ),
    "clustering_protocols/protocols/fccm/party.py": (
        "fccm/test_lying_about_starts.py",
        "fccm/test_rounds.py",
        "fccm/test_results.py",
    ),
    "clustering_protocols/protocols/llf/columns_party.py": (
        "llf/test_split_columns.py",
        "llf/test_results.py",
        _VECTORS,
    ),
    "clustering_protocols/protocols/llf/rows_party.py": (
        *_ROUNDS,
        "llf/test_small_clusters.py",
        "llf/test_results.py",
    ),
    "clustering_protocols/shared_stages/starts/clusters.py": _ROUNDS,
    "clustering_protocols/protocols/mixture/model.py": _MIXTURE,
    "clustering_protocols/protocols/mixture/bound.py": _MIXTURE,
    "clustering_protocols/protocols/omnifc/party.py": (
        "omnifc/test_session.py",
        "omnifc/test_secrecy.py",
    ),
    "clustering_protocols/protocols/pqmds/party.py": (*_PQMDS, "pqmds/test_release.py"),
}

Found = list[tuple[Mutant, Verdict]]


class Copies:
    """Copies of the tree, each lent to one mutant at a time."""

    def __init__(self, folder: Path, n_copies: int, timeout: float) -> None:
        self.timeout = timeout
        self.free: SimpleQueue[Copy] = SimpleQueue()
        for number in range(n_copies):
            self.free.put(Copy(folder / str(number)))

    def check(self, tests: Sequence[str]) -> None:
        """Stop if the tests fail, or take too long, without any fault."""
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


def survivors(found: Found) -> None:
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
    survivors(found)
    share = sum(verdict != "survived" for _, verdict in found) / len(found)
    print(f"\n{share:.1%} of {len(found)} mutants killed; goal {GOAL:.0%}")
    sys.exit(share < GOAL)


if __name__ == "__main__":
    main()
