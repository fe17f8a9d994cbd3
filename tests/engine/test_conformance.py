"""What every protocol of the catalogue must hold, whatever it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustering_protocols import codec, engine, enrolment, packets, registry, simulation
from clustering_protocols.contract import Example, Memory
from clustering_protocols.data import MatrixSource, matrix
from clustering_protocols.errors import AgreementMismatch
from clustering_protocols.registry import Proposal
from clustering_protocols.secrecy import envelopes

SEED = 3
FOLDER = Path(registry.protocols.__path__[0])
MINIMUM_ROWS = 10

EXAMPLES = [
    pytest.param(name, example, id=f"{name}-{number}")
    for name, known in registry.catalogue().items()
    for number, example in enumerate(known.examples())
]
every_example = pytest.mark.parametrize(("name", "example"), EXAMPLES)
every_protocol = pytest.mark.parametrize("name", registry.catalogue())


def split(example: Example[Any]) -> simulation.Split:
    return simulation.split(example.X, example.layout, SEED, missing=example.missing)


def simulate(example: Example[Any], **options: Any) -> simulation.Simulated:
    return simulation.run(
        example.params, example.layout, split(example).data, SEED, **options
    )


def labels(simulated: simulation.Simulated) -> dict[str, list[int]]:
    return {slot: o.labels.tolist() for slot, o in simulated.outcomes.items()}


class Resumed:
    """A session whose roles forget everything but their bytes after every round."""

    def __init__(self, example: Example[Any], *, backwards: bool = False) -> None:
        name = registry.name_of(example.params)
        session = "simulation"
        self.data = split(example).data
        self.keys = simulation.entropies(SEED, session, example.layout.names)
        secret = enrolment.session_secret(self.keys[simulation.COORDINATOR], session)
        proposal = Proposal(
            title=session,
            protocol=name,
            params=example.params.model_dump(mode="json"),
            layout=example.layout,
            seed=SEED,
        )
        terms = registry.draw_up(session, proposal)
        roster = {
            slot: enrolment.enrol(
                secret, session, slot, self.keys[slot], d.n_rows, len(d.columns)
            )
            for slot, d in self.data.items()
        }
        self.agreement = enrolment.agree(terms, roster)
        self.memories = dict.fromkeys(roster, b"")
        self.backwards = backwards

    def party(self, slot: str) -> engine.PartyEngine:
        return engine.PartyEngine(
            agreement=self.agreement, slot=slot, entropy=self.keys[slot]
        )

    def labels(self) -> dict[str, list[int]]:
        move = engine.begin(self.agreement)
        while isinstance(move, engine.Opened):
            engine.load.cache_clear()
            move = self.one_round(move)
        return {
            slot: self.party(slot)
            .conclude(self.memory(slot), result, self.data[slot])
            .labels.tolist()
            for slot, result in move.results.items()
        }

    def one_round(self, opened: engine.Opened) -> engine.Opened | engine.Closed:
        slots = list(opened.tasks)[:: -1 if self.backwards else 1]
        contributions, after = {}, {}
        for slot in slots:
            answer = self.party(slot).reply(
                self.memory(slot), opened.tasks[slot], self.data[slot]
            )
            contributions[slot] = answer.contribution
            after[slot] = freeze(answer.memory)
        move = engine.advance(self.agreement, opened.state, opened.tasks, contributions)
        if not (isinstance(move, engine.Opened) and move.round == opened.round):
            self.memories |= after
        return move

    def memory(self, slot: str) -> Memory:
        return thaw(self.memories[slot])


def freeze(memory: Memory) -> bytes:
    entries = {k: np.frombuffer(v, np.uint8) for k, v in memory.entries.items()}
    return codec.encode({}, entries)


def thaw(frozen: bytes) -> Memory:
    arrays = codec.decode(frozen)[1] if frozen else {}
    return Memory({kind: array.tobytes() for kind, array in arrays.items()})


@every_example
def test_roles_resumed_from_bytes_give_the_same_labels(
    name: str, example: Example[Any]
) -> None:
    assert Resumed(example).labels() == labels(simulate(example)), name


@every_example
def test_the_order_in_which_parties_answer_is_irrelevant(
    name: str, example: Example[Any]
) -> None:
    forwards, backwards = Resumed(example), Resumed(example, backwards=True)
    assert forwards.labels() == backwards.labels(), name


@every_example
def test_the_same_seed_gives_the_same_labels(name: str, example: Example[Any]) -> None:
    assert labels(simulate(example)) == labels(simulate(example)), name


@every_example
def test_every_message_is_written_one_way(name: str, example: Example[Any]) -> None:
    for sent in simulate(example).sent:
        packet = packets.read(sent.payload)
        assert packets.restamp(sent.payload, packet.address.attempt) == sent.payload, (
            name
        )


@every_example
def test_every_common_row_gets_a_label_of_its_row_group(
    name: str, example: Example[Any]
) -> None:
    parts = split(example)
    outcomes = simulate(example).outcomes
    assert set(outcomes) == set(example.layout.names), name
    for row in range(example.layout.n_row_groups):
        group = example.layout.row_group(row)
        common = set.intersection(*(set(parts.held[slot].tolist()) for slot in group))
        found = [of_rows(parts.held[slot], outcomes[slot].labels) for slot in group]
        assert all(each == found[0] for each in found)
        if example.missing:
            assert found[0].keys() == common
            assert len(common) < len(parts.rows[row])
        else:
            assert common == set(parts.rows[row].tolist())


def of_rows(rows: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> dict[int, int]:
    """Return labels by row number, but for rows that did not take part."""
    assert len(rows) == len(labels)
    given = zip(rows.tolist(), labels.tolist(), strict=True)
    return {row: label for row, label in given if label != -1}


@pytest.mark.parametrize(
    ("name", "example"),
    [case for case in EXAMPLES if len(case.values[1].layout.slots) > 1],  # type: ignore[union-attr]  # pytest types its parameters as anything
)
def test_a_party_refuses_the_task_of_another(name: str, example: Example[Any]) -> None:
    session = Resumed(example)
    opened = engine.begin(session.agreement)
    assert isinstance(opened, engine.Opened), name
    first, *_, last = example.layout.names
    with pytest.raises(AgreementMismatch):
        session.party(first).reply(Memory(), opened.tasks[last], session.data[first])


@every_example
def test_no_raw_row_leaves(
    name: str, example: Example[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither rows nor sums of one or two rows are in any payload or envelope."""
    sealed: list[bytes] = []
    seal = envelopes.seal

    def recording(content: bytes, *others: Any) -> bytes:
        sealed.append(content)
        return seal(content, *others)

    monkeypatch.setattr(envelopes, "seal", recording)
    sent = [message.payload for message in simulate(example).sent]
    found = np.unique(np.concatenate([*map(numbers, [*sent, *sealed]), [np.inf]]))
    for slot, data in split(example).data.items():
        for rows in secrets(matrix(data)):
            assert not contains(found, rows).any(), f"{name}: a row of {slot} left"


def secrets(X: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Rows, sums of two rows, and both scaled by the column's own mean and spread."""
    pairs = np.array([X[i] + X[j] for i, j in combinations(range(len(X)), 2)])
    yield from (X, pairs, X - X.mean(axis=0), (X - X.mean(axis=0)) / X.std(axis=0))


def contains(
    found: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return for each row whether all of its numbers occur among those found."""
    places = np.searchsorted(found, rows - 1e-9 * np.abs(rows))
    return np.all(np.abs(found[places] - rows) <= 2e-9 * np.abs(rows), axis=1)


def numbers(payload: bytes) -> np.ndarray[Any, Any]:
    """Return all floating-point numbers in a payload, wherever they stand."""
    header, arrays = codec.decode(payload)
    floats = [a.ravel() for a in arrays.values() if a.dtype.kind == "f"]
    return np.concatenate([*floats, [float(v) for v in leaves(header)]])


def leaves(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, float):
        yield value


def test_the_search_for_raw_rows_would_find_them() -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))
    payload = codec.encode({}, {"leak": X[2:3].T.copy()})
    found = np.unique(np.append(numbers(payload), np.inf))
    assert contains(found, X).tolist() == [False, False, True, False, False]


@every_protocol
def test_the_catalogue_says_who_learns_what_and_which_risks_there_are(
    name: str,
) -> None:
    known = registry.protocol(name)
    assert {"analyst", "party"} <= set(known.learns)
    assert all(sentence.endswith(".") for sentence in known.risks.values())
    for example in known.examples():
        brought = known.risks_of(example.params, example.layout)
        assert set(brought) <= set(known.risks)
        known.check(example.params, example.layout)


@every_protocol
def test_every_parameter_has_a_description_and_survives_json(name: str) -> None:
    known = registry.protocol(name)
    for field, info in known.params.model_fields.items():
        nested = info.annotation is not None and hasattr(
            info.annotation, "model_fields"
        )
        assert info.description or nested, f"{name}: {field} has no description"
    for example in known.examples():
        values = example.params.model_dump(mode="json")
        assert registry.parse_params(name, values) == example.params


@every_protocol
def test_every_folder_explains_itself(name: str) -> None:
    readme = (FOLDER / name / "README.md").read_text()
    assert readme.startswith(f"# `{name}`")
    assert "| round |" in readme, "the message table is missing"
    assert "Who learns what" in readme


def test_examples_are_large_enough_for_the_guards() -> None:
    for parameter in EXAMPLES:
        example: Example[Any] = parameter.values[1]  # type: ignore[assignment]  # pytest types its parameters as anything
        sizes = [source.n_rows for source in split(example).data.values()]
        assert min(sizes) >= MINIMUM_ROWS
        assert all(isinstance(s, MatrixSource) for s in split(example).data.values())
