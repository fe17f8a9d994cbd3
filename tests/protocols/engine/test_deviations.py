"""If the analyst deviates, a party stops, or sends what an honest session would send.

Every protocol of the catalogue gets deviations drawn from seeds: an honest session, and
one message in it that is another one. A failure says how to repeat it.
"""

import os
import secrets
from typing import Any, NamedTuple

import pytest
from support.lies import again
from support.repeats import NIGHTLY, thorough

from clustering_protocols import catalogue, engine
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.engine.task_checks import Admission
from tests.protocols.engine.deviations import Drawn, draw
from tests.protocols.engine.recorded import small
from tests.protocols.engine.sealing import read_before_sealing

REPEAT = os.environ.get("COTERIE_DEVIATION", "")  # protocol:seed:number

# What is the analyst's word: no party can know that it should be another. Each of these
# is a risk code.
ITS_WORD = {
    "measure": [{"labels"}, {"memberships"}],
    "select": [{"common"}, {"n_rows"}, {"common", "n_rows"}],
    "select-linked": [{"rows"}, {"n_rows"}, {"n_rows", "rows"}],
    "add": [{"overflowed", "total"}],  # that some site's share did not fit
}


STOP = {"measure", "scatter"}
"""Tasks of which the analyst says which one comes: one more update, or the end."""

SEALS_LITTLE = {"describe", "mixture"}
"""Protocols that seal in one round alone: their lies are those of the shared stages."""

HIDDEN = frozenset({"words", "distances"})
"""Arrays under masks."""


class Sent(NamedTuple):
    """What leaves a party: all but ciphertexts."""

    header: Any
    arrays: dict[str, bytes]
    sealed: list[tuple[bytes, str]]


class Stand(NamedTuple):
    journal: engine.Journal
    memory: Memory


def asked(drawn: Drawn, at: Stand, task: bytes) -> tuple[Sent, Stand]:
    """Return what a party sends, and where it then stands; its error where it stops."""
    party = drawn.session.party(drawn.slot)
    data = drawn.session.data[drawn.slot]
    with read_before_sealing() as sealed:
        answer = party.reply(at.journal, at.memory, task, data)
    packet = packets.parse(answer.contribution)
    arrays = {name: array.tobytes() for name, array in packet.arrays.items()}
    contents = [(each.content, str(each.binding)) for each in sealed]
    return Sent(packet.header, arrays, contents), Stand(answer.journal, answer.memory)


def is_its_word(drawn: Drawn) -> bool:
    """Return whether a lie is about nothing but what is the analyst's to say."""
    kind = packets.parse(drawn.at.task).header.record["kind"]
    if {kind, packets.parse(drawn.lie.content).header.record["kind"]} == STOP:
        return True
    params = drawn.session.session.params
    its_word = list(ITS_WORD.get(kind, []))
    if getattr(params, "quorum", None) is not None:
        its_word += [{"members"}]  # who was away
    return drawn.changed in its_word


def check(drawn: Drawn) -> str:
    """Return how a party met a deviation; fail where it should have stopped."""
    try:
        lie = packets.parse(drawn.lie.content).address
    except CoterieError as error:
        return type(error).__name__
    index, at = drawn.index, drawn.at
    if lie.round == at.journal.round and index:
        index -= 1  # a new attempt of the round before: from what was known before it
    known = drawn.session.standings[drawn.slot]
    try:
        found, after = asked(
            drawn, Stand(at.journal, known[index].memory), drawn.lie.content
        )
    except CoterieError as error:
        return type(error).__name__
    honest = again(drawn.session.agreement, known[index].task, lie.attempt)
    own = Stand(known[index].journal, known[index].memory)
    expected, follows = asked(drawn, own, honest)
    told_otherwise = after.journal.transcript != follows.journal.transcript
    others = differing(found, expected, bound=told_otherwise)
    if is_its_word(drawn):
        return "its word"  # whatever follows from it
    if found.header.record["kind"] == "signed" and not found.sealed:
        return "only signed"  # the end, told early: nothing but a signature left
    assert not others, f"it answered: {', '.join(others)} differ"
    if after.memory.entries == follows.memory.entries:
        return "sent the same"
    return stops_later(drawn, index + 1, after)


def stops_later(drawn: Drawn, index: int, at: Stand) -> str:
    """Return how a party that now knows other things continues with an honest analyst."""
    for known in drawn.session.standings[drawn.slot][index:]:
        try:
            found, at = asked(drawn, at, known.task)
        except CoterieError:
            return "stopped later"
        expected, follows = asked(drawn, Stand(known.journal, known.memory), known.task)
        others = differing(found, expected, bound=True)
        assert not others, f"it answered a later task: {', '.join(others)} differ"
        if at.memory.entries == follows.memory.entries:
            break
    return "sent the same"


def differing(found: Sent, expected: Sent, *, bound: bool) -> list[str]:
    """Return the names of the parts that differ; their bytes are of no use to read.

    ``bound``: the party was told another past. What is bound to it then differs, and is
    noise to anyone who was told otherwise: masks, signatures and what is sealed.
    """
    if bound:
        found, expected = unbound(found), unbound(expected)
    parts = zip(Sent._fields, found, expected, strict=True)
    return [name for name, one, other in parts if one != other]


def unbound(sent: Sent) -> Sent:
    values = {**sent.header.record["values"]}
    values.pop("signature", None)
    header = sent.header.model_copy(
        update={"record": {**sent.header.record, "values": values}}
    )
    arrays = {name: each for name, each in sent.arrays.items() if name not in HIDDEN}
    return Sent(header, arrays, [])


def run(name: str, examples: list[int], seed: str, count: int) -> dict[str, int]:
    if REPEAT:
        protocol, seed, number = REPEAT.split(":")
        numbers = [int(number)] if protocol == name else []
    else:
        numbers = list(range(count))
    met: dict[str, int] = {}
    for number in numbers:
        drawn = draw(name, examples, f"{name}:{seed}:{number}")
        try:
            how = check(drawn)
        except Exception as error:
            again = f"COTERIE_DEVIATION={name}:{seed}:{number}"
            raise AssertionError(f"{drawn}\nAgain with {again}: {error!r}") from error
        met[how] = met.get(how, 0) + 1
    return met


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(catalogue.catalogue().keys() - SEALS_LITTLE))
def test_a_party_stops_or_sends_what_an_honest_run_has_it_send(name: str) -> None:
    examples, seed = small(name), "0"
    if NIGHTLY:
        examples = list(range(len(catalogue.protocol(name).reference().examples())))
        seed = secrets.token_hex(4)
    count = thorough(ci=50, nightly=2000)
    met = run(name, examples, seed, count)
    stopped = sum(count for how, count in met.items() if how[0].isupper())
    assert REPEAT or stopped > count / 2, met


@pytest.mark.skipif(bool(REPEAT), reason="one deviation is to be repeated")
def test_of_a_party_that_admits_everything_deviations_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: what finds nothing because it looks at nothing would pass too."""
    run("llf", small("llf"), "0", 100)  # while parties still keep a journal
    admits = lambda _, journal, *__: journal  # noqa: E731  a stand-in of one line
    monkeypatch.setattr(Admission, "admit_task", admits)
    with pytest.raises(AssertionError, match="it answered"):
        run("llf", small("llf"), "0", 100)
