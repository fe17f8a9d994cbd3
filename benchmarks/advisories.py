"""Checks the versions that the lock files pin for known weaknesses, with pip-audit.

    make audit

Exit code 0: no advisory is known. 1: at least one is known. 3: there was no data on all
or some versions. The source of data is asked about a version that is known to be weak,
too: if it has no advisory on that one, its silence about others means nothing.
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
    """Return the pins of all locks in parts, none of which pins a name twice."""
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
    """Return what pip-audit says of each pin; an empty list if it got no answer."""
    with TemporaryDirectory() as folder:
        requirements = Path(folder) / "pins.txt"
        requirements.write_text("".join(f"{n}=={v}\n" for n, v in pins.items()))
        words = ["--no-deps", "--disable-pip", "--format", "json"]
        try:
            answer = subprocess.run(
                [program, "--requirement", str(requirements), *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            ).stdout
            return list(json.loads(answer)["dependencies"])
        except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
            return []


def has_data(program: str) -> bool:
    """Return whether the source of data has an advisory on the known weak version."""
    return any(each.get("vulns") for each in ask(program, KNOWN_WEAK))


def advisories(answers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each advisory."""
    for each in answers:
        for entry in each.get("vulns", []):
            mended = ", ".join(entry.get("fix_versions", [])) or "no release"
            yield f"{each['name']} {each['version']}: {entry['id']}; mended in {mended}"


def main(words: list[str] | None = None) -> int:
    """Print the advisories on the pinned versions; return the exit code."""
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
    pins = {pin for part in parts for pin in part.items()}
    unanswered = sorted(f"{name} {version}" for name, version in pins - known)
    print("\n".join(found) or "No advisory is known of what was audited.")
    print(f"Audited: {len(known)} of {len(pins)} pinned versions.")
    if unanswered:
        print(f"No data on {', '.join(unanswered)}. Run 'make audit' again. {_BY_HAND}")
    return FOUND if found else NO_DATA if unanswered else CLEAN


if __name__ == "__main__":
    sys.exit(main())
