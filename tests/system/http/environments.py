"""Virtual environments with only the named libraries, linked from this installation.

The links need no network and hardly any time.
"""

import subprocess
import sys
import venv
from collections.abc import Iterable, Set as AbstractSet
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement


def needed(name: str, extras: AbstractSet[str] = frozenset()) -> set[str]:
    """Return the names of all distributions that one needs, including these extras."""
    found: set[str] = set()
    ahead = [(name, frozenset(extras))]
    seen = set(ahead)
    while ahead:
        each, wanted = ahead.pop()
        for text in requires(each) or ():
            asked = Requirement(text)
            if not applies(asked, wanted):
                continue
            found.add(asked.name)
            next_one = (asked.name, frozenset(asked.extras))
            if next_one not in seen:
                seen.add(next_one)
                ahead.append(next_one)
    return found


def applies(asked: Requirement, extras: Iterable[str]) -> bool:
    """Return whether a requirement holds on this machine, for one of these extras."""
    if asked.marker is None:
        return True
    return any(asked.marker.evaluate({"extra": extra}) for extra in ("", *extras))


def environment(folder: Path, wheel: Path, names: Iterable[str]) -> Path:
    """Make an environment with a wheel and links to libraries; return its programs."""
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    [packages] = folder.glob("lib/python*/site-packages")
    install = [sys.executable, "-m", "pip", "--python", str(programs / "python")]
    install += ["install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    for name in names:
        link(name, packages)
    return programs


def link(name: str, packages: Path) -> None:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise AssertionError(f"{name} is not installed here") from None
    tops = {file.parts[0] for file in found.files or ()}
    for top in tops - {"..", "__pycache__"}:
        place = packages / top
        if not place.exists():
            place.symlink_to(str(found.locate_file(top)))
