"""The installed build of Coterie, and the compilation of its C kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
_GIT: Final = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
_GIT_SECONDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Identifies a build of Coterie.

    version: the version of the installed distribution.
    schema: the latest revision of the database schema.
    commit: twelve digits of the Git commit, plus ``-dirty`` if files changed; or None.
    """

    version: str
    schema: str
    commit: str | None

    def __str__(self) -> str:
        commit = "unknown" if self.commit is None else self.commit
        return f"{self.version} (commit {commit}, schema {self.schema})"


def read_build() -> Build:
    """Return the version, database schema and Git commit of the installed build."""
    return Build(version=version("coterie"), schema=find_schema(), commit=find_commit())


def find_schema() -> str:
    """Return the latest revision of the database schema, from the last migration."""
    last = max(path.name for path in (find_migrations() / "versions").glob("[0-9]*.py"))
    return last.partition("_")[0]


def find_migrations() -> Path:
    """Return the folder of migrations, in the installed wheel or next to the checkout."""
    service = find_spec("analyst_service")
    package = Path(service.origin).parent if service and service.origin else _PACKAGE
    wheel_folder = package / "alembic"
    return wheel_folder if wheel_folder.is_dir() else package.parent / "alembic"


def find_commit() -> str | None:
    """Return the commit recorded in the wheel, or else what Git reports, or None."""
    commit_file = _PACKAGE / "commit"
    if commit_file.exists():
        return commit_file.read_text(encoding="ascii").strip()
    root = _PACKAGE.parent
    if not (root / ".git").exists():
        return None
    with suppress(OSError, subprocess.SubprocessError):
        process = subprocess.run(  # noqa: S603  constant words, and no shell
            ["git", "-C", str(root), *_GIT],  # noqa: S607  whichever git is there
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_SECONDS,
        )
        return process.stdout.strip()
    return None


_FLAGS: Final = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",  # bit-identical results on every processor
    "-fno-math-errno",
    "-fno-trapping-math",
)


def build_kernels(library: Path) -> bool:
    """Compile the C kernels unless they are up to date; return whether they exist."""
    source = _PACKAGE.parent / "clustering_protocols" / "numerics" / "kernels.c"
    digest = sha256(source.read_bytes()).hexdigest()
    if library.exists() and digest.encode() in library.read_bytes():
        return True
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return False
    temporary = library.with_name(f"{library.name}.{os.getpid()}")
    define = f'-DSOURCE_DIGEST="{digest}"'
    command = [compiler, *_FLAGS, define, str(source), "-o", str(temporary), "-lm"]
    for flags in ((), ("-DONE_CLONE",)):  # older compilers cannot build all clones
        process = subprocess.run([*command, *flags], capture_output=True, check=False)  # noqa: S603
        if process.returncode == 0:
            temporary.replace(library)
            return True
    return False
