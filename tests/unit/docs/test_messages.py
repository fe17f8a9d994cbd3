"""docs/messages.md is what the program writes, and every message says what to do."""

from benchmarks import messages
from clustering_protocols import catalogue
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.terms import session_risks
from party_sdk.cli.terminal.output import exit_code


def test_the_page_is_what_the_program_writes() -> None:
    assert messages.PAGE.read_text() == messages.page(), "run: make generated"


def test_every_problem_and_risk_stands_on_the_page() -> None:
    text = messages.page()
    for problem in Problem:
        assert f"| `{problem.slug}` |" in text
        assert exit_code(problem) in messages._EXITS
    for code in session_risks.RISKS:
        assert f"`{code}`: " in text
    for name, known in catalogue.catalogue().items():
        if known.methods:
            for code in known.risks:
                assert f"`{name}.{code}`: " in text
