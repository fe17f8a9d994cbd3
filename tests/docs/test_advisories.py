"""``make audit`` says what it knows, and that it knows nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import advisories

WEAK = [{"id": "CVE-0", "fix_versions": ["2.0"]}]
CANARY = "jinja2==2.11.2"


@pytest.fixture
def audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Audit locks by a stand-in that knows these: exit code, and what was printed."""

    def run(known: dict[str, Any], *locks: str, says: str = "") -> tuple[int, str]:
        program = tmp_path / "pip-audit"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, sys\n"
            f"known = json.loads({json.dumps(json.dumps(known))})\n"
            "lines = open(sys.argv[2]).read().split()\n"
            "names = [line.partition('==')[0] for line in lines]\n"
            "assert len(set(names)) == len(names)\n"
            "found = []\n"
            "for line in lines:\n"
            "    name, _, version = line.partition('==')\n"
            "    if line in known:\n"
            "        found.append(dict(name=name, version=version, vulns=known[line]))\n"
            "    else:\n"
            "        found.append(dict(name=name, skip_reason='not found'))\n"
            f"print({says!r} or json.dumps(dict(dependencies=found)))\n"
        )
        program.chmod(0o755)
        paths = []
        for number, lock in enumerate(locks):
            paths.append(tmp_path / f"{number}.lock")
            paths[-1].write_text(lock)
        code = advisories.main([str(program), *map(str, paths)])
        return code, capsys.readouterr().out

    return run


LOCK = "a==1.0 \\\n    --hash=sha256:00\nb==2.0 ; python_version < '3.12' \\\n    --hash=sha256:11\n"


def test_what_is_known_is_printed_with_what_mends_it(audit: Any) -> None:
    known = {CANARY: WEAK, "a==1.0": [], "b==2.0": WEAK}
    code, said = audit(known, LOCK)
    assert code == advisories.FOUND
    assert "b 2.0: CVE-0; mended in 2.0" in said
    assert "2 of 2" in said


def test_nothing_known_of_all_is_good(audit: Any) -> None:
    code, _ = audit({CANARY: WEAK, "a==1.0": [], "b==2.0": []}, LOCK)
    assert code == advisories.CLEAN


def test_several_versions_of_a_package_are_all_audited(audit: Any) -> None:
    other = "b==3.0 ; python_version >= '3.12'\n"
    known = {CANARY: WEAK, "a==1.0": [], "b==2.0": [], "b==3.0": WEAK}
    code, said = audit(known, LOCK, other)
    assert code == advisories.FOUND
    assert "3 of 3" in said


@pytest.mark.parametrize(
    "known",
    [{}, {CANARY: []}, {"a==1.0": [], "b==2.0": []}],
    ids=["skips all", "has no advisories", "lacks the one that it has to know"],
)
def test_a_source_without_data_is_not_taken_for_good_news(
    audit: Any, known: dict[str, Any]
) -> None:
    code, said = audit(known, LOCK)
    assert code == advisories.NO_DATA
    assert "Nothing was audited" in said


@pytest.mark.parametrize("says", ["error: no route to host", "[]", '{"fixes": []}'])
def test_a_program_that_could_not_ask_is_no_data(audit: Any, says: str) -> None:
    assert audit({}, LOCK, says=says)[0] == advisories.NO_DATA


def test_what_was_skipped_is_named(audit: Any) -> None:
    code, said = audit({CANARY: WEAK, "a==1.0": []}, LOCK)
    assert code == advisories.NO_DATA
    assert "No data on b 2.0" in said


def test_all_pins_of_the_locks_are_read() -> None:
    locks = sorted(advisories.ROOT.glob("requirements*.lock"))
    assert len(locks) >= 4
    pins = {pin for part in advisories.pinned(locks) for pin in part.items()}
    for lock in locks:
        for line in lock.read_text().splitlines():
            if line and line[0].isalnum():
                name, _, rest = line.partition("==")
                assert (name, rest.split()[0]) in pins
