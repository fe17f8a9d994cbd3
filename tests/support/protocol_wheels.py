"""Wheels of protocols by other authors, built and installed without a network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DUMMY = ROOT / "clustering_protocols" / "protocols" / "dummy"
PAGE = ROOT / "docs" / "protocol-package.md"
_METHODS = """methods = (
        Method(
            name="kmeans",
            partitionings=("horizontal",),
            shapes=("spherical",),
            rounds=RoundBudget.FEW,
        ),
    )
    params = """
_IMPORT = "from clustering_protocols.common.suitability import Method, RoundBudget"


def write_project(folder: Path, name: str, first: str = "") -> Path:
    """Write the project of docs/protocol-package.md under a name.

    ``first``: code that its package also runs when it is imported.
    """
    package = folder / f"coterie_{name}"
    shutil.copytree(DUMMY, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in package.rglob("*.py"):
        text = re.sub(r"\bDummy\b", name.title(), path.read_text())
        path.write_text(text)
    start = package / "__init__.py"
    text = start.read_text().replace("    for_tests = True\n", "")
    text = text.replace("params = ", _METHODS)
    start.write_text(f"{text}\n{first}".replace("class ", f"{_IMPORT}\nclass ", 1))
    [project] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (folder / "pyproject.toml").write_text(project.replace("parrot", name))
    return folder


def install(project: Path, place: Path) -> None:
    """Build the wheel of a project; install it into a folder."""
    wheels = project / "dist"
    pip = [sys.executable, "-m", "pip"]
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    options = ["--disable-pip-version-check", "--no-cache-dir"]
    run = [*pip, *build, *options, "--wheel-dir", str(wheels), str(project)]
    subprocess.run(run, check=True, capture_output=True)
    [wheel] = wheels.glob("*.whl")
    words = ["install", "--no-deps", "--no-index", "--target", str(place), str(wheel)]
    subprocess.run([*pip, *words, *options], check=True, capture_output=True)


def write_metadata(folder: Path, name: str, entries: str) -> None:
    """Let a folder say that a distribution with entry points is installed there."""
    place = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0"
    )
    (place / "entry_points.txt").write_text(entries)
