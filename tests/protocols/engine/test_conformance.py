"""Properties that every protocol of the catalogue must have."""

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.examples import begun, dealt

from clustering_protocols import catalogue, protocols, simulation
from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract import Example
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.records import codec
from clustering_protocols.simulation import Session
from clustering_protocols.terms import session_risks
from tests.protocols.engine.raw_rows import contains, numbers, tell_tales
from tests.protocols.engine.recorded import small
from tests.protocols.engine.sealing import read_before_sealing

SEED = 3
FOLDER = Path(protocols.__path__[0])

EXAMPLES = [
    pytest.param(
        name,
        example,
        id=f"{name}-{number}",
        marks=[] if number in (0, 1, *small(name)) else pytest.mark.slow,
    )
    for name, known in catalogue.catalogue().items()
    for number, example in enumerate(known.reference().examples())
]
# of module scope: the tests of one example come together, and share its sessions
every_example = pytest.mark.parametrize(("name", "example"), EXAMPLES, scope="module")
every_protocol = pytest.mark.parametrize("name", catalogue.catalogue())


class Finished(NamedTuple):
    """A session that went to its end, and what was sealed in its envelopes."""

    simulated: simulation.SimulationResult
    sealed: list[bytes]


@cache
def finished(example: Example[Any]) -> Finished:
    with read_before_sealing() as sealed:
        simulated = begun(example, SEED, Session).run_to_end()
    return Finished(simulated, [each.content for each in sealed])


@every_example
def test_labels_are_those_of_the_pooled_reference(
    name: str, example: Example[Any]
) -> None:
    """But for rows that lack columns, and for codes with noise."""
    simulated = finished(example).simulated
    found = simulation.compare_with_pooled(simulated, example.X, dealt(example, SEED))
    exact = example.layout.is_regular and example.params.epsilon_per_person == np.inf
    assert found.fidelity == 1.0 or not exact, name


@every_example
def test_new_rows_with_other_columns_are_refused(
    name: str, example: Example[Any]
) -> None:
    for slot, outcome in finished(example).simulated.outcomes.items():
        if outcome.predict is not None:
            width = len(dealt(example, SEED).data[slot].columns)
            with pytest.raises(InvalidData, match="columns"):
                outcome.predict(MatrixSource(np.zeros((2, width + 1)))), name


@every_example
def test_every_common_row_gets_a_label_of_its_row_group(
    name: str, example: Example[Any]
) -> None:
    parts = dealt(example, SEED)
    outcomes = finished(example).simulated.outcomes
    assert set(outcomes) == set(example.layout.names), name
    for row in range(example.layout.n_row_groups):
        group = example.layout.row_group(row)
        common = set.intersection(*(set(parts.held[slot].tolist()) for slot in group))
        found = [of_rows(parts.held[slot], outcomes[slot].labels) for slot in group]
        assert all(each == found[0] for each in found)
        if example.params.counts_linked:
            assert not found[0], "nobody learns which rows are common"
        elif example.missing:
            assert found[0].keys() == common
            assert len(common) < len(parts.rows[row])
        else:
            assert common == set(parts.rows[row].tolist())


def of_rows(rows: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> dict[int, int]:
    """Return labels by row number, but for rows that did not take part."""
    assert len(rows) == len(labels)
    given = zip(rows.tolist(), labels.tolist(), strict=True)
    return {row: label for row, label in given if label != -1}


@every_example
def test_no_raw_row_leaves(name: str, example: Example[Any]) -> None:
    """Neither rows nor sums of one or two rows are in any payload or envelope."""
    simulated, sealed = finished(example)
    sent = [message.payload for message in simulated.sent]
    found = np.unique(np.concatenate([*map(numbers, [*sent, *sealed]), [np.inf]]))
    for slot, data in dealt(example, SEED).data.items():
        for rows in tell_tales(matrix(data)):
            assert not contains(found, rows).any(), f"{name}: a row of {slot} left"


def test_the_search_for_raw_rows_would_find_them() -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))
    sealed = codec.encode({}, {"leak": X[2:3].T.copy()})
    packet = codec.encode({}, {"content": np.frombuffer(sealed, np.uint8)})
    for payload in (sealed, packet):
        found = np.unique(np.append(numbers(payload), np.inf))
        assert contains(found, X).tolist() == [False, False, True, False, False]


@every_protocol
def test_the_catalogue_lists_readers_and_risks(name: str) -> None:
    known = catalogue.protocol(name)
    assert {"analyst", "party"} <= set(known.learns)
    for example in known.reference().examples():
        brought = known.risks_of(example.params, example.layout)
        assert set(brought) <= {*known.risks, *session_risks.RISKS}
        assert len(set(brought)) == len(brought)
        known.check_params(example.params, example.layout)


@every_protocol
def test_every_parameter_has_a_description(name: str) -> None:
    for field, info in catalogue.protocol(name).params.model_fields.items():
        is_nested = hasattr(info.annotation, "model_fields")
        assert info.description or is_nested, f"{name}: {field} has no description"


@every_protocol
def test_every_folder_explains_itself(name: str) -> None:
    readme = (FOLDER / name / "README.md").read_text()
    assert readme.startswith(f"# `{name}`")
    assert "Who learns what" in readme
    for module in re.findall(r"`(\w+\.py)`", readme):
        assert (FOLDER / name / module).is_file(), f"there is no {module}"
