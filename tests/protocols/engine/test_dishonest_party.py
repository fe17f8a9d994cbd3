"""A dishonest party can end a session, but cannot learn rows or crash another role.

Every protocol and example of the catalogue gets lies drawn from seeds: sizes, kinds and
numbers that are none, envelopes to nobody, sealed with other keys or around something
else. The session ends with an error of the catalogue, or continues; no role fails in
another way, and what the others send stays as it was. A failure says how to repeat it.
"""

import os
import random
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from support.repeats import NIGHTLY, some, thorough

from clustering_protocols import catalogue, engine
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.common.limits import LARGEST_NUMBER as LARGEST
from clustering_protocols.numerics.data_source import matrix
from tests.protocols.engine.dishonest_party import Spoiling, draw, huge, lying
from tests.protocols.engine.raw_rows import contains, numbers, tell_tales
from tests.protocols.engine.recorded import Recorded, honest, small

REPEAT = os.environ.get("COTERIE_LIE", "")  # protocol:example:seed:number
EXAMPLES = [
    pytest.param(
        name,
        number,
        id=f"{name}-{number}",
        marks=[] if number in small(name) else pytest.mark.thorough(only=True),
    )
    for name, known in catalogue.catalogue().items()
    for number in range(len(known.reference().examples()))
]
FIRST = [
    pytest.param(name, number, marks=[pytest.mark.slow] * bool(number))
    for name, number in (case.values for case in EXAMPLES if not case.marks)
]

SAYING_REALS = {("dc", 0), ("llf", 0), ("pqmds", 0)}
"""Examples in which a leader sends real numbers for sure."""


def lied(session: Recorded, liar: str, how: Spoiling) -> None:
    opened = session.open
    answers: dict[str, engine.TaskOutcome] = {
        slot: lying(session, slot, how)
        if slot == liar
        else session.ask_party(slot, task)
        for slot, task in opened.tasks.items()
    }
    given = {slot: answer.contribution for slot, answer in answers.items()}
    for slot, contribution in given.items():
        engine.check_contribution(session.agreement, opened.tasks[slot], contribution)
    session.advance(given)
    if not session.is_round_reopened(opened):
        session.memories |= {slot: answer.memory for slot, answer in answers.items()}


@contextmanager
def as_in_production() -> Iterator[None]:
    """Let numbers overflow: a service does not turn warnings into errors."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def met(session: Recorded, liar: str, how: Spoiling) -> str:
    try:
        with as_in_production():
            lied(session, liar, how)
            while not session.is_over:
                session.play_round()
            session.outcomes()
    except CoterieError as error:
        return type(error).__name__
    finally:
        nothing_leaked(session, liar)
    return "continued"


def nothing_leaked(session: Recorded, liar: str) -> None:
    """No row, and no sum of two, stands in what others sent after the lie."""
    payloads = [m.payload for m in session.received_messages if m.sender != liar]
    found = np.unique(np.concatenate([*map(numbers, payloads), [np.inf]]))
    for slot, data in session.data.items():
        for rows in tell_tales(matrix(data)) if slot != liar else ():
            assert not contains(found, rows).any(), f"a row of {slot} left"


def run(name: str, example: int, seed: str, count: int) -> Mapping[str, int]:
    numbers_ = list(range(count))
    if REPEAT:
        protocol, wanted, seed, number = REPEAT.split(":")
        numbers_ = [int(number)] if (protocol, wanted) == (name, str(example)) else []
    ways: dict[str, int] = {}
    for number in numbers_:
        rng = random.Random(f"{name}:{example}:{seed}:{number}")
        how, session, liar = drawn(rng, honest(name, example))
        said = f"{liar} in round {session.open.round}, {session.open.stage}: {how.told}"
        try:
            way = met(session, liar, how)
        except Exception as error:
            again = f"COTERIE_LIE={name}:{example}:{seed}:{number}"
            raise AssertionError(f"{said}\nAgain with {again}: {error!r}") from error
        ways[way] = ways.get(way, 0) + 1
    return ways


def drawn(rng: random.Random, whole: Recorded) -> tuple[Spoiling, Recorded, str]:
    while True:
        session = whole.branch(rng.randrange(whole.n_rounds))
        liar = rng.choice(sorted(session.open.tasks))
        how = draw(rng, session, whole.answered(liar, session.open))
        if how is not None:
            return how, session, liar


@pytest.mark.unused_seam("seal")
@pytest.mark.thorough
@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_a_lie_ends_the_session_by_name_or_not_at_all(name: str, example: int) -> None:
    seed = secrets.token_hex(4) if NIGHTLY else "0"
    run(name, example, seed, thorough(ci=6, nightly=100))


@pytest.mark.unused_seam("seal")
@pytest.mark.parametrize(("name", "example"), EXAMPLES if NIGHTLY else FIRST)
@pytest.mark.parametrize("value", some([1e308, LARGEST], ci=1))
def test_numbers_beyond_any_row_end_by_name_or_not_at_all(
    name: str, example: int, value: float
) -> None:
    """The leader of each round sends and seals such numbers, where it says any."""
    whole, said = honest(name, example), 0
    for number in range(whole.n_rounds):
        session = whole.branch(number)
        how, found = huge(value)
        way = met(session, min(session.open.tasks), how)
        said += bool(found)
        assert not found or value == LARGEST or way != "continued", found
    assert said or (name, example) not in SAYING_REALS


def test_what_is_checked_on_arrival_is_refused_there() -> None:
    """The control: a lie of each kind that the analyst sees at once ends there."""
    whole = honest("llf")
    ways: list[str] = []
    for number in range(40):
        how, session, liar = drawn(random.Random(f"control:{number}"), whole)
        ways.append(met(session, liar, how))
    refused: Any = set(ways) - {"continued"}
    assert {"Malformed", "InvalidArray", "AgreementMismatch"} <= refused
    assert ways.count("continued") < len(ways) / 2
