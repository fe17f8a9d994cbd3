"""Where programs of ours write: each path that they open, make, move or remove there."""

from pathlib import Path
from typing import Final

_HOOK: Final = """
import os, sys
_log = os.open(os.environ["COTERIE_TEST_WRITES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.mkdir": 1, "os.rename": 2, "os.link": 2, "os.remove": 1, "os.rmdir": 1,
            "os.symlink": 2, "os.truncate": 1, "os.chmod": 1, "sqlite3.connect": 1}

def _note(event, args):
    if event == "open":
        flags = args[2]
        paths = args[:1] if isinstance(flags, int) and flags & _WRITES else ()
    else:
        paths = args[: _CHANGES.get(event, 0)]
    for path in paths:
        if isinstance(path, (str, bytes, os.PathLike)):
            full = os.path.abspath(os.fsdecode(path))
            os.write(_log, full.encode() + b"\\n")

sys.addaudithook(_note)
"""


def noting(folder: Path) -> dict[str, str]:
    """Return an environment in which Python programs note where they write."""
    hook = folder / "hook"
    hook.mkdir(parents=True, exist_ok=True)
    (hook / "sitecustomize.py").write_text(_HOOK)
    return {"PYTHONPATH": str(hook), "COTERIE_TEST_WRITES": str(folder / "writes.log")}


def written(folder: Path) -> set[Path]:
    """Return where programs have written that ran in such an environment."""
    return set(map(Path, (folder / "writes.log").read_text().splitlines()))
