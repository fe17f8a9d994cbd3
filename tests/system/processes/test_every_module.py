"""Every module of the packages can be imported, with no warning of Python's."""

import json
import subprocess
import sys
import tomllib

import pytest
from support.product import ROOT

PROGRAM = """
import importlib, json, pkgutil, sys

found = {}
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    modules = [m.name for m in pkgutil.walk_packages(package.__path__, f"{name}.")]
    for module in modules:
        importlib.import_module(module)
    found[name] = 1 + len(modules)
print(json.dumps(found))
"""


@pytest.mark.every_python
def test_every_module_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    words = [sys.executable, "-W", "error", "-c", PROGRAM, *packages]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        package: len(list((ROOT / package).rglob("*.py"))) for package in packages
    }
