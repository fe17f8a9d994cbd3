"""Holds what the locks pin against what is known of its weaknesses, by pip-audit.

    make audit

Exit code 0: no advisory is known. 1: there is one, or several. 3: there was no data for
all or some of it, and nothing can be said. Of a version that is known to be weak, the
source of data has to know an advisory too: else what it does not say means nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
KNOWN_WEAK: Final = {"jinja2": "2.11.2"}  # CVE-2020-28493
CLEAN, FOUND, NO_DATA = 0, 1, 3
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_SECONDS: Final = 900
_BY_HAND: Final = "If it stays so, look the versions up at https://osv.dev by hand."

Pins = Mapping[str, str]
"""Versions by name."""


def pinned(locks: Iterable[Path]) -> list[Pins]:
    """Return all that the locks pin, each version once and no name twice in a part."""
    parts: list[dict[str, str]] = []
    pins = {pin for lock in locks for pin in _PIN.findall(lock.read_text())}
    for name, version in sorted(pins):
        for part in parts:
            if name not in part:
                part[name] = version
                break
        else:
            parts.append({name: version})
    return parts


def ask(program: str, pins: Pins) -> list[dict[str, Any]]:
    """Return what pip-audit says of each; nothing where it could not ask."""
    with TemporaryDirectory() as folder:
        asked = Path(folder) / "pins.txt"
        asked.write_text("".join(f"{n}=={v}\n" for n, v in pins.items()))
        words = ["--no-deps", "--disable-pip", "--format", "json"]
        try:
            answer = subprocess.run(
                [program, "--requirement", str(asked), *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            ).stdout
            return list(json.loads(answer)["dependencies"])
        except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
            return []


def has_data(program: str) -> bool:
    """Return whether the source of data knows what everybody does."""
    return any(each.get("vulns") for each in ask(program, KNOWN_WEAK))


def advisories(answers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each advisory."""
    for each in answers:
        for known in each.get("vulns", []):
            mended = ", ".join(known.get("fix_versions", [])) or "no release"
            yield f"{each['name']} {each['version']}: {known['id']}; mended in {mended}"


def main(words: list[str] | None = None) -> int:
    """Print what is known of what the locks pin; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="pip-audit")
    parser.add_argument("locks", nargs="+", type=Path)
    given = parser.parse_args(words)
    if not has_data(given.program):
        print(
            "No data on advisories: the package index cannot be reached, or a mirror in "
            "its place leaves them out. Nothing was audited. Run 'make audit' again on a "
            "machine that reaches the package index, by HTTPS_PROXY if need be. "
            f"{_BY_HAND}"
        )
        return NO_DATA
    parts = pinned(given.locks)
    answers = [answer for part in parts for answer in ask(given.program, part)]
    found = list(advisories(answers))
    known = {(each["name"], each.get("version")) for each in answers if "vulns" in each}
    asked = {pin for part in parts for pin in part.items()}
    left = sorted(f"{name} {version}" for name, version in asked - known)
    print("\n".join(found) or "No advisory is known of what was audited.")
    print(f"Audited: {len(known)} of {len(asked)} pinned versions.")
    if left:
        print(f"No data on {', '.join(left)}. Run 'make audit' again. {_BY_HAND}")
    return FOUND if found else NO_DATA if left else CLEAN


if __name__ == "__main__":
    sys.exit(main())
