"""Numbers moved by at most half their last digit: how far, and always the same way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import kstest

from benchmarks.repeats import find_axes, last_digits, matched, rows_of, turned
from clustering_protocols.catalogue import name_of
from clustering_protocols.common.errors import GuardRefused, InvalidParameters
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.session_terms import draw_up
from clustering_protocols.shared_stages import jitter
from clustering_protocols.shared_stages.jitter import JitteredRows
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import Layout, SessionRequest, Terms, read_terms
from party_sdk.party.folder import PartyFolder
from party_sdk.party.planned_use import moved_rows, use_of

RNG = np.random.default_rng(0)
SCHEMA = Schema(
    fields=(
        Field(name="dose", decimals=1, constraints=Constraints(minimum=0, maximum=9)),
        Field(name="age", type="integer"),
        Field(name="smokes", type="boolean"),
        Field(
            name="grade", type="integer", categories=(0, 1, 2), categoriesOrdered=True
        ),
    )
)
X = np.column_stack(
    [
        RNG.integers(0, 91, 400) / 10,
        RNG.integers(20, 90, 400),
        RNG.integers(0, 2, 400),
        RNG.integers(0, 3, 400),
    ]
)
WAYS = [OmniFC(n_clusters=3, jitter=True), DataCollaboration(n_clusters=3, jitter=True)]


class InPieces(MatrixSource):
    """Rows that are read in several batches."""

    def batches(self) -> Iterator[np.ndarray]:
        for begin in range(0, self.n_rows, 70):
            yield X[begin : begin + 70]


def source(rows: np.ndarray = X) -> MatrixSource:
    return MatrixSource(rows, columns=SCHEMA.names, gaps=True)


def moved(rows: np.ndarray = X, key: bytes = bytes(32)) -> np.ndarray:
    words = np.arange(len(rows), dtype=np.uint64)
    return matrix(
        JitteredRows(source=source(rows), schema=SCHEMA, key=key, words=words)
    )


def terms_of(
    params: Params, schema: Schema = SCHEMA, preparation: Preparation | None = None
) -> Terms:
    proposal = SessionRequest(
        protocol={"name": name_of(params), "params": params.model_dump(mode="json")},
        layout=Layout.lattice(3),
        dictionary=(schema,),
        preparation=None if preparation is None else (preparation,),
        seed=0,
    )
    return read_terms(draw_up("s", proposal))


def test_jitter_stays_below_half_a_digit_and_spares_levels() -> None:
    shifts = moved() - X
    assert np.abs(shifts[:, 0]).max() <= 0.05 + 1e-12
    assert np.abs(shifts[:, 1]).max() <= 0.5
    assert kstest(shifts[:, 1], "uniform", (-0.5, 1)).pvalue > 1e-4
    assert (shifts[:, 2:] == 0).all()
    assert moved()[:, 0].min() >= 0
    assert moved()[:, 0].max() <= 9
    assert abs(np.corrcoef(shifts[:, 0], shifts[:, 1])[0, 1]) < 0.15


def test_no_value_stays_no_value() -> None:
    gappy = np.where(np.arange(len(X))[:, None] % 7 == 0, np.nan, X)
    assert np.array_equal(np.isnan(moved(gappy)), np.isnan(gappy))


def test_rows_move_alike_however_they_are_read() -> None:
    words = np.arange(len(X), dtype=np.uint64)
    data = JitteredRows(
        source=InPieces(X, columns=SCHEMA.names),
        schema=SCHEMA,
        key=bytes(32),
        words=words,
    )
    assert len(list(data.batches())) == 6
    assert np.array_equal(np.concatenate(list(data.batches())), moved())


def test_a_row_beyond_where_the_range_ends_moves_inwards() -> None:
    """As far as it would have moved outwards."""
    at_an_end = np.where(np.arange(len(X))[:, None] % 2 == 0, [[0.0, 50, 0, 0]], X)
    shifts = (moved(at_an_end) - at_an_end)[::2, 0]
    assert (shifts > 0).all()
    assert kstest(shifts, "uniform", (0, 0.05)).pvalue > 1e-4


def test_without_a_dictionary_nothing_is_moved() -> None:
    with pytest.raises(InvalidParameters):
        jitter.check(())
    jitter.check((SCHEMA,))
    unsaid = Schema(fields=(Field(name="dose"),))
    with pytest.raises(InvalidParameters):
        jitter.check((SCHEMA, unsaid))


def test_another_key_moves_otherwise() -> None:
    assert not np.isclose(moved(), moved(key=bytes([1]) * 32))[:, :2].any(axis=1).all()


@pytest.mark.threat(157)
def test_jitter_of_a_row_is_the_same_in_every_session(
    tmp_path: Path,
) -> None:
    ids = [f"p{number}" for number in range(len(X))]
    terms = terms_of(WAYS[0], preparation=_levels(SCHEMA))
    first = PartyFolder(tmp_path, "one", "r1c1")
    there = matrix(
        moved_rows(first, terms, MatrixSource(X, columns=SCHEMA.names, ids=ids))
    )
    backwards = MatrixSource(X[::-1], columns=SCHEMA.names, ids=ids[::-1])
    again = moved_rows(PartyFolder(tmp_path, "two", "r1c1"), terms, backwards)
    assert np.array_equal(matrix(again)[::-1], there)
    fewer = Schema(fields=SCHEMA.fields[1:3])
    data = MatrixSource(X[:, 1:3], columns=fewer.names, ids=ids)
    less = terms_of(WAYS[1], fewer, _levels(fewer))
    folder = PartyFolder(tmp_path, "three", "r1c1")
    assert np.array_equal(matrix(moved_rows(folder, less, data)), there[:, 1:3])


def test_without_ids_other_variables_move_numbers_anew(
    tmp_path: Path,
) -> None:
    found = []
    for session, fields in (("one", SCHEMA.fields[:2]), ("two", SCHEMA.fields[:3])):
        schema = Schema(fields=fields)
        terms = terms_of(WAYS[0], schema, _levels(schema))
        folder = PartyFolder(tmp_path, session, "r1c1")
        data = MatrixSource(X[:, : len(fields)], columns=schema.names)
        found.append(matrix(moved_rows(folder, terms, data))[:, :2])
        use = use_of(folder, terms, schema.names)
        use = use.model_copy(update={"analyst": "a", "coordinator": "c"})
        if session == "one":
            folder.shown.keep(use, data, allowed=False)
    assert np.isclose(*found).mean() < 0.02
    with pytest.raises(GuardRefused, match="of other columns"):
        folder.shown.check(use, data, allowed=False)


def test_jitter_hides_nothing_from_those_who_know_rows() -> None:
    """They find them again, and d + 2 of them still open the others."""
    rows = rows_of("wine", most=178)
    scale, seen = rows.std(axis=0), _jittered(rows)
    far = cdist(rows / scale, seen / scale)
    assert (far.argmin(axis=1) == np.arange(len(rows))).all()
    Z, known = turned(seen / scale, 0), np.arange(rows.shape[1] + 2)
    centres = Z[known].mean(axis=0), (rows[known] / scale).mean(axis=0)
    U, _, V = np.linalg.svd(
        (Z[known] - centres[0]).T @ (rows[known] / scale - centres[1])
    )
    opened = ((Z - centres[0]) @ U @ V + centres[1]) * scale
    is_right = np.abs(opened - rows) < 0.05 * np.ptp(rows, axis=0)
    assert is_right.all(axis=1).mean() > 0.9


def _levels(schema: Schema) -> Preparation:
    return Preparation(fields=tuple(Treatment(name=name) for name in schema.names))


@pytest.mark.parametrize("params", WAYS, ids=["omnifc", "dc"])
def test_jitter_needs_declared_decimals_and_no_imputation(
    params: Params,
) -> None:
    unsaid = Schema(fields=(Field(name="dose"), Field(name="age", type="integer")))
    with pytest.raises(InvalidParameters, match="decimals 'dose'"):
        terms_of(params, unsaid)
    filled = Preparation(fields=(Treatment(name="age", missing="mean"),))
    with pytest.raises(InvalidParameters, match="'age' are filled"):
        terms_of(params, SCHEMA, filled)


@pytest.mark.threat(157)
@pytest.mark.parametrize("name", ["iris", "wine", "diabetes"])
def test_rounded_numbers_show_their_axes_and_with_jitter_none(name: str) -> None:
    rows = rows_of(name, most=200)
    two = {j for j, column in enumerate(rows.T) if len(np.unique(column)) == 2}
    n_found = [len(_found(rows) - two), len(_found(_jittered(rows)) - two)]
    assert n_found == [rows.shape[1] - len(two), 0]


def _found(rows: np.ndarray) -> set[int]:
    Z = turned(rows, 0)
    return set(matched(find_axes(Z, 20), Z, rows))


def _jittered(rows: np.ndarray) -> np.ndarray:
    decimals = np.rint(-np.log10(last_digits(rows))).astype(int).tolist()
    fields = []
    for place, digits in enumerate(decimals):
        is_two = len(np.unique(rows[:, place])) == 2
        kind = (
            {"categories": (1, 2), "type": "integer"}
            if is_two
            else {"decimals": digits}
        )
        fields.append(Field(name=f"x{place}", **kind))
    words = np.arange(len(rows), dtype=np.uint64)
    data = JitteredRows(
        source=MatrixSource(rows),
        schema=Schema(fields=tuple(fields)),
        key=bytes(range(32)),
        words=words,
    )
    return matrix(data)
