"""docs/runbook.md: every symptom is what a program says, and a test shows its cause."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "runbook.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| `")
]
NIGHT = "service/test_outages.py::"
ALERTS = "system/http/test_watching.py::test_each_alert_is_raised_when_it_should_and_not_before"
SHOWN = {
    "The analyst cannot be reached": (
        "party/test_silence.py::"
        "test_a_coordinator_reads_at_once_that_all_analysts_are_gone"
    ),
    "No answer from the analyst at": (
        "party/test_silence.py::test_a_request_that_nobody_answers_is_said_once"
    ),
    "The analyst's certificate ended on": (
        "party/test_tls.py::test_an_expired_certificate_is_reported_with_its_day"
    ),
    "shows a certificate of an authority that is not trusted here": (
        "party/test_tls.py::test_an_untrusted_server_gets_no_token_and_no_retry"
    ),
    "The certificate of": (
        "party/test_tls.py::test_a_certificate_for_another_name_is_reported_as_such"
    ),
    "The analyst has no room left": (
        f"{NIGHT}test_low_disk_space_refuses_uploads_but_serves_results"
    ),
    "waiting until": "service/test_sessions.py::test_a_session_shows_who_is_awaited",
    "A party stopped for good": (
        "party/test_leaving.py::test_a_party_that_left_sends_nothing_more"
    ),
    "No valid credential came with the request": (
        "service/test_operation.py::"
        "test_metrics_count_sessions_rounds_bytes_and_refusals"
    ),
    "not ready: The database": (
        f"{NIGHT}test_a_change_of_readiness_is_one_line_with_its_reason"
    ),
    "the database is away` with `role": (
        f"{NIGHT}test_a_database_login_refusal_is_logged_with_its_reason"
    ),
    "the database is away` with `too many": (
        f"{NIGHT}test_a_database_login_refusal_is_logged_with_its_reason"
    ),
    "the database is away` with `Connection": (
        "service/test_administration.py::test_an_outage_of_the_database_is_one_line"
    ),
    "step of …: The analyst's machine": (
        f"{NIGHT}test_a_step_that_finds_the_disk_full_says_so_and_waits"
    ),
    "not ready: The data folder": (
        f"{NIGHT}test_a_read_only_data_folder_is_reported_with_its_errno"
    ),
    "step of …: WorkerDied": (
        f"{NIGHT}test_a_worker_that_is_killed_is_logged_with_signal_and_size"
    ),
    **dict.fromkeys(
        ("The analyst's key in", "The store of arrays in"),
        "service/test_installation.py::"
        "test_serve_and_backup_name_the_wrong_setting_and_the_remedy",
    ),
    "the file": (
        "service/test_administration.py::"
        "test_a_file_that_is_no_secret_is_refused_by_its_name_alone"
    ),
    "notice given up": ALERTS,
    "Coterie": ALERTS,
}
# Words of a server or of a system, and what a person's own names stand for.
_OTHERS = re.compile(
    r"role .*|.*is not permitted to log in|password authentication failed"
    r"|too many clients already|Connection refused|for north|failure|SIGKILL|ends on"
)
# Where a program puts a word into its sentence.
_PARTS = r" ?…:? ?|: |; |\(E\w+\)\.?|signal 9 \(|^not |^The analyst (?=cannot)"


@cache
def source() -> str:
    """All that our programs say, with texts of several lines joined."""
    packages = ("analyst_service", "party_sdk", "clustering_protocols")
    files = [path for each in packages for path in (ROOT / each).rglob("*.py")]
    text = "\n".join(path.read_text() for path in [*files, ROOT / "docker/alerts.yml"])
    return re.sub(r'"\s*\n\s*f?"', "", text)


def shown_by(symptom: str) -> str:
    [found] = {test for begin, test in SHOWN.items() if symptom.startswith(f"`{begin}")}
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_a_line_has_a_command_a_cause_a_remedy_and_a_test(row: list[str]) -> None:
    symptom, command, cause, remedy = row
    assert "`" in command
    for sentences in (cause, remedy):
        assert re.search(r"[.`]$", sentences), sentences
    file, _, test = shown_by(symptom).partition("::")
    assert f"\ndef {test}(" in (ROOT / "tests" / file).read_text()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_a_symptom_is_what_a_program_says(row: list[str]) -> None:
    for quoted in re.findall(r"`([^`]+)`", row[0]):
        for part in re.split(_PARTS, quoted):
            words = part.strip(" .)")
            if words and not _OTHERS.fullmatch(words):
                assert words in source(), words


def test_the_page_has_its_three_tables() -> None:
    assert len(ROWS) > 25
    assert {
        begin
        for begin in SHOWN
        if not any(row[0].startswith(f"`{begin}") for row in ROWS)
    } == set()
