"""All messages of the example sessions equal the golden records; see tests/README.md."""

import subprocess
import sys
from copy import deepcopy
from functools import cache

import pytest

from clustering_protocols import catalogue
from clustering_protocols.contract import PartyContext
from clustering_protocols.numerics.randomness import KeyedStream
from tests.protocols.engine.golden import baseline, files
from tests.protocols.engine.golden.cases import cases
from tests.protocols.engine.golden.comparing import first_differences
from tests.protocols.engine.golden.recording import Golden, recorded


@pytest.mark.parametrize("options", [(), ("--killed",)], ids=["kept", "killed"])
@pytest.mark.quick(1)
def test_sessions_send_what_is_kept_of_them(options: tuple[str, ...]) -> None:
    """In one process: each has to import all that computes, which takes the longest."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.protocols.engine.golden", *options],
        env=baseline.environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
    assert ended.stdout.count("as kept") == len(catalogue.catalogue())


def test_there_is_a_file_for_every_protocol_and_no_other() -> None:
    kept = {path.stem for path in files.FOLDER.glob("*")}
    assert kept == catalogue.catalogue().keys(), 'make golden GOLDEN="NAME --write"'


@cache
def played() -> Golden:
    return recorded(cases("dummy")["0"])


PLACES = list(played()["records"])
SUM, MASKED = PLACES[-5], PLACES[-2]  # of an earlier and of a later round


def made(mean: str, words: str, labels: str = "int64[40] 0123456789ab") -> Golden:
    golden = deepcopy(played())
    golden["records"][SUM] = {"mean": f"float64[2] {mean}"}
    golden["records"][MASKED] = {"words": f"uint64[9] {words}", "labels": labels}
    return golden


HALF, QUARTER = "aaaaaaaaaaaa ~ 2 0.5 0.25", "bbbbbbbbbbbb"
ROUNDED, FARTHER = (
    f"dddddddddddd ~ 2 {mean} 0.25" for mean in ("0.5000000000001", "0.50001")
)
LABELS = "int64[40] ffffffffffff"
CHANGES: dict[str, tuple[Golden, bool, list[str]]] = {
    "a mask": (
        *(made(HALF, "cccccccccccc"), True),
        [MASKED, "'words' was uint64[9] bbbbbbbbbbbb, is uint64[9] cccccccccccc"],
    ),
    "a mask, other libraries": (made(HALF, "cccccccccccc"), False, [MASKED, "'words'"]),
    "rounding": (made(ROUNDED, "cccccccccccc"), True, [SUM, "the same up to rounding"]),
    "rounding, other libraries": (made(ROUNDED, "cccccccccccc"), False, []),
    "another number": (made(FARTHER, "cccccccccccc"), False, [SUM]),
    "another label": (made(ROUNDED, "cccccccccccc", LABELS), False, ["'labels'"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_named_with_its_place(what: str) -> None:
    """But for rounding, and what is masked behind it, where other libraries computed."""
    changed, exactly, words = CHANGES[what]
    said = list(first_differences(made(HALF, QUARTER), changed, exactly=exactly))
    assert len(said) == bool(words)
    assert all(word in said[0] for word in words)


def test_a_secret_that_is_drawn_for_another_purpose_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both sides draw it alike: no party notices, and nobody else can read it."""
    stream = PartyContext.stream

    def renamed(self: PartyContext, purpose: str, *others: str | int) -> KeyedStream:
        return stream(self, f"renamed/{purpose}", *others)

    monkeypatch.setattr(PartyContext, "stream", renamed)
    now = recorded(cases("dummy")["0"], played()["terms"])
    said = next(first_differences(played(), now, exactly=True))
    assert said.startswith("records: 2.1 greeting: word, r1c1 to r1c2: 'word' was ")
