"""Write spec/vectors, or drive a party program through them.

    python -m benchmarks.vectors [LAYER or PROTOCOL ...]
    python -m benchmarks.vectors check [--level D] -- COMMAND ...

By default all files are written. ``check`` starts COMMAND, a program as section 14 of the
specification describes it, and ends with 5 if an answer differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from benchmarks.vectors.checker import CheckedCase, Checker, ProgramProcess
from benchmarks.vectors.form import (
    LEVELS,
    SCHEMA,
    SESSIONS,
    VECTORS,
    format_file,
    read_layers,
    read_sessions,
    write_schema,
)
from benchmarks.vectors.layers import BUILDERS, build_layer
from benchmarks.vectors.sessions import PROTOCOLS, build_sessions

_DIFFERS: Final = 5


def write(names: Sequence[str]) -> None:
    """Write the files of these layers and protocols, all by default, and the schema."""
    (VECTORS / SESSIONS).mkdir(parents=True, exist_ok=True)
    (VECTORS / SCHEMA).write_text(write_schema())
    for name in names or (*BUILDERS, *PROTOCOLS):
        if name in BUILDERS:
            (VECTORS / f"{name}.json").write_text(format_file(build_layer(name)))
        else:
            path = VECTORS / SESSIONS / f"{name}.json"
            path.write_text(format_file(build_sessions(name)))


def check(command: Sequence[str], level: str = LEVELS[-1]) -> list[CheckedCase]:
    """Return what a program made of all cases up to a level of conformance."""
    with ProgramProcess(command) as program:
        checker = Checker(program=program, level=level)
        return [
            *checker.check_layers(read_layers(VECTORS)),
            *checker.check_sessions(read_sessions(VECTORS)),
        ]


def report(cases: Sequence[CheckedCase]) -> str:
    """Return a line for each wrong case, then how many there are of each kind."""
    wrong = [case.sentence for case in cases if case.wrong]
    left_out = Counter(case.call for case in cases if case.left_out)
    n_good = len(cases) - len(wrong) - left_out.total()
    lines = [*wrong, f"{n_good} of {len(cases)} cases are right, {len(wrong)} wrong."]
    if left_out:
        calls = ", ".join(f"{call} ({n})" for call, n in sorted(left_out.items()))
        lines.append(f"{left_out.total()} of unknown calls were left out: {calls}.")
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    """Write or check, as the words say; return the exit code."""
    if words[:1] != ["check"]:
        write(words)
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vectors check")
    parser.add_argument("--level", choices=LEVELS, default=LEVELS[-1])
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(words[1:])
    cases = check(asked.command, asked.level)
    print(report(cases))
    return _DIFFERS if any(case.wrong for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
