"""What runs beside the requests imports no web library."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from types import ModuleType

from analyst_service import jobs, retention

WEB = {"fastapi", "starlette", "uvicorn"}
IMPORT = """
import json, sys
from importlib import import_module
loaded = {}
for name in sys.argv[1:]:
    import_module(name)
    loaded[name] = sorted({module.partition(".")[0] for module in sys.modules})
print(json.dumps(loaded))
"""


def modules(*packages: ModuleType) -> list[str]:
    return [
        f"{package.__name__}.{found.name}"
        for package in packages
        for found in pkgutil.iter_modules(package.__path__)
        if found.name != "endpoints"
    ]


BACKGROUND = [
    "analyst_service.process_context",
    *modules(jobs, retention),
]


def loaded_after(*names: str) -> dict[str, set[str]]:
    """The packages that a fresh interpreter has loaded after each of some imports."""
    words = [sys.executable, "-c", IMPORT, *names]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return {name: set(found) for name, found in json.loads(done.stdout).items()}


def test_what_runs_in_the_background_loads_no_web_library() -> None:
    assert {"jobs.driver", "jobs.worker", "retention.service"} <= {
        name.removeprefix("analyst_service.") for name in BACKGROUND
    }
    for name, loaded in loaded_after(*BACKGROUND).items():
        assert "sqlalchemy" in loaded  # the right interpreter told
        assert not loaded & WEB, name


def test_a_web_library_would_be_noticed() -> None:
    [loaded] = loaded_after("analyst_service.requests").values()
    assert {"fastapi", "starlette"} <= loaded
