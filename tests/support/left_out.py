"""A plugin of pytest: ends a run with the tests that it has left out."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support import needs


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """Come last, after pytest's own list of what was skipped."""
    yield
    tell(terminalreporter)


def tell(terminalreporter: Any) -> None:
    """Tell which tests did not run, why, and how they would."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons or "not slow" in terminalreporter.config.option.markexpr:
        terminalreporter.section("left out")
    for need in needs.ALL:
        for reason in [text for text in reasons if text.startswith(need.absence)]:
            terminalreporter.line(
                f"{reasons.pop(reason)} tests {reason}. To have them {need.how}; "
                f"{need.required_by}=1 lets them fail instead."
            )
    for reason, n_tests in reasons.items():
        terminalreporter.line(f"{n_tests} tests: {reason}")
    if "not slow" in terminalreporter.config.option.markexpr:
        terminalreporter.line(
            "Real processes, browsers, PostgreSQL and slow cases: make test-all runs them."
        )
