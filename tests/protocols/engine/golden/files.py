"""The files of golden records: one of each protocol, one line for each record."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from clustering_protocols import simulation
from tests.protocols.engine.golden.baseline import TESTS, computed_by
from tests.protocols.engine.golden.cases import cases
from tests.protocols.engine.golden.comparing import first_differences
from tests.protocols.engine.golden.recording import Golden, recorded

FOLDER = TESTS / "protocols" / "golden"
_DEPTH = 4  # file, sessions, one session, its parts: what lies deeper is one line


class Compared(NamedTuple):
    """How many records a protocol's sessions sent, and where they differ first."""

    n_records: int
    differences: list[str]


def path_of(protocol: str) -> Path:
    return FOLDER / f"{protocol}.json"


def compare(
    protocol: str, kind: type[simulation.Session] = simulation.Session
) -> Compared:
    """Play the sessions of a protocol; return where they differ from the file."""
    if not path_of(protocol).exists():
        return Compared(0, [f"{protocol}: {path_of(protocol)} does not exist"])
    file = json.loads(path_of(protocol).read_text())
    exactly = file["computed by"] == computed_by()
    kept: dict[str, Golden] = file["sessions"]
    known, n_records, found = cases(protocol), 0, []
    for name in known.keys() ^ kept.keys():
        where = "nowhere kept" if name in known else "no example any more"
        found.append(f"{protocol} {name}: {where}")
    for name in known.keys() & kept.keys():
        now = recorded(known[name], kept[name]["terms"], kind)
        n_records += len(now["records"])
        for each in first_differences(kept[name], now, exactly=exactly):
            found.append(f"{protocol} {name}: {each}")  # noqa: PERF401  two loops
    return Compared(n_records, sorted(found))


def write(protocol: str, *, new_terms: bool) -> None:
    path = path_of(protocol)
    kept = {} if new_terms or not path.exists() else json.loads(path.read_text())
    terms = {name: each["terms"] for name, each in kept.get("sessions", {}).items()}
    sessions = {
        name: recorded(example, terms.get(name))
        for name, example in cases(protocol).items()
    }
    content = {"computed by": computed_by(), "sessions": sessions}
    path.write_text(_dump(content) + "\n")


def _dump(value: Any, depth: int = 0) -> str:
    """Return JSON with a line for each value at the depth of a record."""
    if depth == _DEPTH or not (value and isinstance(value, dict | list)):
        return json.dumps(value, ensure_ascii=False)
    indent, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, list):
        inside = ("," + indent).join(_dump(each, depth + 1) for each in value)
        return f"[{indent}{inside}{end}]"
    inside = ("," + indent).join(
        f"{json.dumps(key)}: {_dump(each, depth + 1)}" for key, each in value.items()
    )
    return f"{{{indent}{inside}{end}}}"
