"""How much work a study is for its people at the desk.

    python -m benchmarks.speed.clicks

A coordinator and three parties go from a question to labels. On the way a party
declines and is invited anew, and the analyst is killed. A choice from a list counts as
two clicks. Ends with 1 if a figure is above its bar.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Play the study, and print each figure beside its bar."""
    path = "tests/system/pages/test_whole_path.py"
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
    head = ["| at the desk | counted | at most |", "|---|---|---|"]
    sys.stdout.write("\n".join([*head, *figures, ""]))
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
