"""What a study at the desk costs its people: clicks, seconds, questions, words, pages.

    python -m benchmarks.clicks

A coordinator and three parties go from a question to labels at desks of their own, in
Chromium, as `tests/pages/test_whole_path.py` plays it: on the way a party declines and is
invited anew, a parameter is mistyped, and the analyst is killed. A choice from a list
counts as two clicks. Seconds are those of a person who reads nothing. Ends with 1 where a
figure is above its bar.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

_STUDY: Final = "tests/pages/test_whole_path.py"


def main() -> None:
    """Play the study, and print each figure beside its bar."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "-rA", _STUDY],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    figures = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    if not figures:
        sys.exit(done.stdout + done.stderr)
    print("| | counted | at most |", "|---|---|---|", *figures, sep="\n")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
