"""What a study costs its people, at the desk and by commands.

    python -m benchmarks.speed.clicks

A coordinator and three parties go from a question to labels. On the way a party
declines and is invited anew, and the analyst is killed.
`tests/system/pages/test_whole_path.py` plays it at four desks in Chromium: clicks,
seconds, questions, words, pages. A choice from a list counts as two clicks.
`tests/system/pages/test_typed_study.py` plays it in four terminals: commands typed and
questions answered, and seconds. Seconds are those of a person who reads nothing. Ends
with 1 where a figure is above its bar.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

_STUDIES: Final = {
    "at the desk": "tests/system/pages/test_whole_path.py",
    "by commands": "tests/system/pages/test_typed_study.py",
}


def main() -> None:
    """Play the study in both ways, and print each figure beside its bar."""
    ends = [_play(name, path) for name, path in _STUDIES.items()]
    sys.exit(max(ends))


def _play(name: str, path: str) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "-rA", path],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    figures = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    if not figures:
        sys.exit(done.stdout + done.stderr)
    heading = f"| {name} | counted | at most |"
    sys.stdout.write("\n".join([heading, "|---|---|---|", *figures, "", ""]))
    return done.returncode


if __name__ == "__main__":
    main()
