"""A run on a machine without a server or a program says what it has left out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support import left_out, needs


class Closing:
    """What pytest prints at the end of a run."""

    def __init__(self, *reasons: str) -> None:
        skipped = [
            SimpleNamespace(longrepr=("x.py", 1, f"Skipped: {reason}"))
            for reason in reasons
        ]
        self.stats = {"skipped": skipped} if skipped else {}
        self.sections: list[str] = []
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.sections.append(title)

    def line(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.parametrize("need", needs.ALL, ids=lambda need: need.name)
def test_what_is_missing_is_counted_with_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, need: needs.Need
) -> None:
    monkeypatch.delenv(need.required_by, raising=False)
    with pytest.raises(pytest.skip.Exception) as skipped:
        needs.leave_out(need, "it is away")
    closing = Closing(*[str(skipped.value)] * 3, "no data")
    left_out.tell(closing)
    assert closing.sections == ["left out"]
    own, other = closing.lines
    assert own.startswith(f"3 tests without {need.name}: it is away.")
    assert need.how in own
    assert other == "1 tests: no data"


@pytest.mark.parametrize("need", needs.ALL, ids=lambda need: need.name)
def test_what_must_be_there_and_is_not_fails(
    monkeypatch: pytest.MonkeyPatch, need: needs.Need
) -> None:
    monkeypatch.setenv(need.required_by, "1")
    with pytest.raises(pytest.fail.Exception, match=f"without {need.name}: it is away"):
        needs.leave_out(need, "it is away")


def test_a_run_that_left_nothing_out_says_nothing() -> None:
    closing = Closing()
    left_out.tell(closing)
    assert closing.sections == closing.lines == []
