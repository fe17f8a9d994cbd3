"""What a home keeps of the rows that it showed: in either order, over sessions, again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from support.drawn_terms import drawn

from clustering_protocols.catalogue import find_protocol_name
from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    InvalidParameters,
)
from clustering_protocols.contract import Params
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.schema import Schema, numeric_schema
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Identities, Layout, Terms
from party_sdk.disclosures.history import History
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy
from party_sdk.home.store import store_of

NAMES = ("a", "b", "c", "d")
ROWS = Layout.lattice(3)
X = load_iris().data[::3] + np.random.default_rng(0).normal(size=(50, 4)) / 100
IDS = [f"patient {number}" for number in range(len(X))]
LLF = LosslessFederated(n_clusters=3)
SIZES = LosslessFederated(n_clusters=3, publish="sizes")
MEMBERS = Release(profiles="members")
ANALYST, OTHER_ANALYST = "a" * 64, "b" * 64
COORDINATOR, OTHER_COORDINATOR = "c" * 64, "d" * 64


def terms_of(
    params: Params,
    names: tuple[str, ...] = NAMES,
    analyst: str = ANALYST,
    coordinator: str = COORDINATOR,
    layout: Layout = ROWS,
    slots: dict[str, str] | None = None,
    release: Release | None = None,
) -> Terms:
    n_groups = layout.n_column_groups
    width = len(names) // n_groups
    groups = [names[g * width : (g + 1) * width] for g in range(n_groups)]
    who = Identities(analyst=analyst, coordinator=coordinator, slots=slots or {})
    dictionary = tuple(numeric_schema(group, -99, 99) for group in groups)
    more = {"identities": who, "release": release, "dictionary": dictionary}
    return drawn(params, layout, **more)


def table(
    rows: np.ndarray = X, names: tuple[str, ...] = NAMES, ids: Any = None
) -> MatrixSource:
    return MatrixSource(rows, columns=names, ids=ids)


POLICY = Policy()
TOGETHER = "allow_shown_together"
NEARLY = "nearly the same rows"
FEWER_THAN_TEN = "fewer than 10 rows remains"


class Home:
    def __init__(self, path: Path) -> None:
        self.path, self.n_sessions = path, 0

    def runs(self, terms: Terms, data: MatrixSource, *, allowed: bool = False) -> None:
        self.n_sessions += 1
        use = Use.from_terms(terms, f"session-{self.n_sessions}", "r1c1", data.columns)
        history = History(self.path)
        rows = history.rows_of(data)
        history.check(use, rows, POLICY, is_agreed=allowed)
        history.record(use, rows, POLICY, is_agreed=allowed)
        # it continues
        history = History(self.path)
        history.check(use, history.rows_of(data), POLICY, is_agreed=allowed)

    def refuses(self, why: str, *session: Any, allowed: bool = False) -> None:
        with pytest.raises(GuardRefused, match=why):
            self.runs(*session, allowed=allowed)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.threat(155)
@pytest.mark.parametrize(
    "rows", [OmniFC(n_clusters=3), DataCollaboration(n_clusters=3)]
)
@pytest.mark.parametrize("means_first", [True, False])
def test_means_and_geometry_of_the_same_rows_are_asked_about(
    home: Home, rows: Params, *, means_first: bool
) -> None:
    first, then = (LLF, rows) if means_first else (rows, LLF)
    home.runs(terms_of(first), table())
    home.refuses(TOGETHER, terms_of(then), table())
    home.runs(terms_of(then), table(), allowed=True)
    home.runs(terms_of(SIZES), table())


OWN, PARTNER, STRANGER, GUEST = "1" * 64, "2" * 64, "3" * 64, "4" * 64
PLACES = DataCollaboration(n_clusters=2, output="coordinates")
PREDICTOR = DataCollaboration(n_clusters=2, predictor=True)


def told(*others: str, coordinator: str = COORDINATOR) -> Terms:
    """Return terms whose profiles everybody reads: of the own variables too."""
    keys = dict(zip(ROWS.names, (OWN, *others), strict=False))
    everybody = Release(profiles="everybody")
    return terms_of(SIZES, coordinator=coordinator, slots=keys, release=everybody)


def placed(*others: str, params: Params = PLACES) -> Terms:
    """Return terms by which parties get places, with nobody else of those in ``told``."""
    layout = ROWS if params.predictor else Layout.lattice(1, 3)
    keys = dict(zip(layout.names, (OWN, *others), strict=False))
    return terms_of(
        params, NAMES[:3], OTHER_ANALYST, OTHER_COORDINATOR, layout, slots=keys
    )


@pytest.mark.threat(145)
@pytest.mark.parametrize("params", [PLACES, PREDICTOR], ids=["places", "predictor"])
@pytest.mark.parametrize(
    ("means", "places", "asks"),
    [
        (told(PARTNER, STRANGER), (GUEST, PARTNER), True),
        (told(PARTNER), (GUEST, STRANGER), True),
        (told(PARTNER, STRANGER), (GUEST,), True),
        (told(STRANGER, GUEST, coordinator=PARTNER), (PARTNER, "5" * 64), True),
        (told(STRANGER, GUEST), (PARTNER, "5" * 64), False),
        (told(STRANGER, OWN), (PARTNER, OWN), False),
    ],
    ids=[
        "one party in both",
        "an open slot beside means",
        "an open slot beside places",
        "the coordinator of the other",
        "nobody in both",
        "the own institution twice",
    ],
)
@pytest.mark.parametrize("means_first", [True, False])
def test_places_and_means_of_the_same_rows_are_asked_about(
    home: Home,
    params: Params,
    means: Terms,
    places: tuple[str, ...],
    *,
    asks: bool,
    means_first: bool,
) -> None:
    ids = table(ids=IDS), table(X[:, :1], NAMES[:1], IDS)
    both = list(zip((means, placed(*places, params=params)), ids, strict=True))
    (first, before), (then, now) = both if means_first else both[::-1]
    home.runs(first, before)
    if asks:
        home.refuses(TOGETHER, then, now)
    home.runs(then, now, allowed=asks)


@pytest.mark.threat(145)
@pytest.mark.parametrize("means_first", [True, False])
def test_sessions_about_other_people_raise_no_question(
    home: Home, *, means_first: bool
) -> None:
    rows = load_iris().data
    terms = [told(PARTNER, STRANGER), placed(PARTNER, GUEST)]
    first, then = terms if means_first else terms[::-1]
    home.runs(first, table(rows[0::2]))
    home.runs(then, table(rows[1::2] + 0.01))


@pytest.mark.parametrize(
    ("n_parties", "release"), [(2, MEMBERS), (3, None)], ids=["own profile", "none"]
)
def test_no_profile_is_kept_where_nothing_is_added_up(
    home: Home, n_parties: int, release: Release | None
) -> None:
    anchor = {"kind": "uniform", "ranges": "declared"}
    params = DataCollaboration(n_clusters=2, scaling="local", anchor=anchor)
    layout = Layout.lattice(n_parties)
    home.runs(terms_of(params, layout=layout, release=release), table())
    home.runs(terms_of(params, release=MEMBERS), table(X[1:]))


def test_places_alone_are_asked_about_nothing(home: Home) -> None:
    for _ in range(3):
        home.runs(placed(PARTNER, STRANGER), table())


@pytest.mark.threat(155)
@pytest.mark.parametrize(("coordinator", "asks"), [(PARTNER, True), (GUEST, False)])
@pytest.mark.parametrize("means_first", [True, False])
def test_means_and_coordinates_at_one_party_raise_a_question(
    home: Home, coordinator: str, *, asks: bool, means_first: bool
) -> None:
    rows = terms_of(OmniFC(n_clusters=3), NAMES, OTHER_ANALYST, coordinator)
    terms = [told(PARTNER, STRANGER), rows]
    first, then = terms if means_first else terms[::-1]
    home.runs(first, table())
    if asks:
        home.refuses(TOGETHER, then, table())
    home.runs(then, table(), allowed=asks)


FEWER = tuple(NAMES[:3])


@pytest.mark.threat(155)
@pytest.mark.parametrize(
    "later",
    [
        table(X[:, :3], FEWER, IDS),
        table(X[::-1]),
        table(X, NAMES, [str(number) for number in range(50)]),
        table(np.vstack([X[10:], X[:25] + 1])),
    ],
    ids=["a field less, with ids", "another order", "another id column", "other rows"],
)
@pytest.mark.parametrize("ids", [None, IDS], ids=["no ids", "ids"])
def test_the_same_people_are_known_again(
    home: Home, later: MatrixSource, ids: Any
) -> None:
    home.runs(terms_of(LLF), table(ids=ids))
    terms = terms_of(OmniFC(n_clusters=3), tuple(later.columns))
    home.refuses(TOGETHER, terms, later)


@pytest.mark.threat(155)
@pytest.mark.parametrize(
    ("analyst", "coordinator", "asks"),
    [
        (OTHER_ANALYST, COORDINATOR, True),
        (ANALYST, OTHER_COORDINATOR, True),
        (OTHER_ANALYST, OTHER_COORDINATOR, False),
    ],
)
def test_one_of_two_keys_is_enough_and_two_others_are_not_known(
    home: Home, analyst: str, coordinator: str, *, asks: bool
) -> None:
    home.runs(terms_of(LLF), table())
    later = terms_of(OmniFC(n_clusters=3), NAMES, analyst, coordinator)
    if asks:
        home.refuses(TOGETHER, later, table())
    home.runs(later, table(), allowed=asks)


@pytest.mark.threat(156)
@pytest.mark.parametrize("then", [LLF, SIZES], ids=["everybody", "members"])
def test_sums_over_nearly_the_same_rows_are_refused(home: Home, then: Params) -> None:
    home.runs(terms_of(LLF), table())
    for allowed in (False, True):
        home.refuses(NEARLY, terms_of(then), table(X[1:]), allowed=allowed)
    home.runs(terms_of(then), table(X[10:]))


def corrected(rows: Sequence[int], column: int) -> np.ndarray:
    found = X.copy()
    found[rows, column] += 1
    return found


@pytest.mark.threat(156)
@pytest.mark.parametrize("ids", [None, IDS], ids=["no ids", "ids"])
@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (X[:-9], NAMES),
        (np.vstack([X[9:], X[:9] + 1]), NAMES),
        (np.vstack([X, X[:1] + 1]), NAMES),
        (X[1:, ::-1], NAMES[::-1]),
        (X[1:, 1:], ("other", "names", "three")),
        (np.column_stack([X, X[:, 0] ** 2])[1:], (*NAMES, "more")),
        (np.delete(X, [7, 23, 41], axis=0), ("other", "names", "now", "four")),
    ],
)
def test_few_new_rows_are_known_whatever_else_changes(
    home: Home, ids: Any, rows: np.ndarray, names: tuple[str, ...]
) -> None:
    home.runs(terms_of(SIZES), table(ids=ids))
    later = None if ids is None else [*IDS, "new"][: len(rows)]
    if ids is not None and np.array_equal(rows[:40], X[9:49]):
        later = [*IDS[9:], *map(str, range(9))]
    home.refuses(NEARLY, terms_of(SIZES, names), table(rows, names, later))


@pytest.mark.threat(156)
@pytest.mark.parametrize("ids", [None, IDS], ids=["no ids", "ids"])
@pytest.mark.parametrize("n_rows", [1, 9])
def test_few_corrected_cells_are_refused_and_many_are_not(
    home: Home, ids: Any, n_rows: int
) -> None:
    """Though another field is read now, and each correction alone is of one row."""
    home.runs(terms_of(SIZES), table(ids=ids))
    rows = np.arange(n_rows)
    more = np.column_stack([corrected(rows, 1), X[:, 0] ** 2]), (*NAMES, "more")
    home.refuses("wait for more changes", terms_of(SIZES, more[1]), table(*more, ids))
    home.runs(terms_of(SIZES), table(corrected(np.arange(20), 1), ids=ids))


@pytest.mark.threat(156)
def test_the_id_of_one_row_that_changed_is_a_row_gone_and_a_row_new(home: Home) -> None:
    home.runs(terms_of(SIZES), table(ids=IDS))
    home.refuses(NEARLY, terms_of(SIZES), table(ids=[*IDS[:-1], "patient 00"]))


def without(*rows: range) -> MatrixSource:
    left = np.setdiff1d(np.arange(len(X)), [row for out in rows for row in out])
    return table(X[left], ids=[IDS[row] for row in left])


@pytest.mark.threat(156)
@pytest.mark.parametrize("n_common", [1, 2, 9])
def test_sums_of_four_sessions_over_few_rows_are_refused(
    home: Home, n_common: int
) -> None:
    """Of no two few rows differ: without one group, another, and without both."""
    one, other = range(10 + n_common), range(10, 21 + n_common)
    for out in ((), (one,), (other,)):
        home.runs(terms_of(SIZES), without(*out))
    home.refuses(FEWER_THAN_TEN, terms_of(SIZES), without(one, other))


@pytest.mark.threat(156)
def test_sums_of_sessions_without_common_rows_are_combined(home: Home) -> None:
    """All rows, one half, and the other half without one row."""
    for out in (range(0), range(25, 50)):
        home.runs(terms_of(SIZES), without(out))
    home.refuses(FEWER_THAN_TEN, terms_of(SIZES), without(range(26)))
    home.runs(terms_of(SIZES), without(range(25)))


@pytest.mark.threat(156)
def test_totals_of_many_rows_are_combined_too(tmp_path: Path) -> None:
    n, history = 40_000, History(tmp_path)
    data = MatrixSource(np.arange(n)[:, None], ids=[str(row) for row in range(n)])
    for name, begin, end in (("all", 0, n), ("one", 0, 100), ("other", 101, n)):
        rows = history.rows_of(data, np.arange(begin, end))
        use = Use(session=name, slot="r1c1", sums=True)
        if name != "other":
            history.record(use, rows, POLICY)
    with pytest.raises(GuardRefused, match=FEWER_THAN_TEN):
        history.record(use, rows, POLICY)


OTHER_FIELDS = np.random.default_rng(7).normal(size=(len(X), 2))


@pytest.mark.threat(156)
@pytest.mark.parametrize("cells", [X[1:], X + np.eye(len(X), 4)], ids=["row", "cells"])
def test_a_session_over_other_fields_between_hides_no_earlier_one(
    home: Home, cells: np.ndarray
) -> None:
    """The third table has the fields of both, so its rows have marks of both."""
    home.runs(terms_of(SIZES), table())
    home.runs(terms_of(SIZES, ("e", "f")), table(OTHER_FIELDS, ("e", "f")))
    rows, names = np.hstack([cells, OTHER_FIELDS[-len(cells) :]]), (*NAMES, "e", "f")
    home.refuses(NEARLY, terms_of(SIZES, names), table(rows, names))


@pytest.mark.threat(156)
def test_terms_set_no_smaller_number_of_rows_than_the_home(home: Home) -> None:
    few = LosslessFederated(n_clusters=3, publish="sizes", min_cluster_rows=1)
    home.runs(terms_of(few), table())
    home.refuses("At least 10 rows", terms_of(few), table(X[1:]))


@pytest.mark.threat(156)
def test_means_published_a_third_time_raise_a_question(home: Home) -> None:
    home.runs(terms_of(LLF), table())
    home.runs(terms_of(LLF), table(X[::-1]))
    home.refuses("2 times before", terms_of(LLF), table())
    home.runs(terms_of(LLF), table(), allowed=True)


def test_only_geometry_of_other_columns_raises_a_question(home: Home) -> None:
    home.runs(terms_of(OmniFC(n_clusters=3)), table())
    home.runs(terms_of(OmniFC(n_clusters=4)), table())
    home.refuses(
        "protocol, or with other columns",
        terms_of(OmniFC(n_clusters=3), FEWER),
        table(X[:, :3], FEWER),
    )


OUTCOME = np.random.default_rng(3).normal(size=(len(X), 1))
WITH_OUTCOME = np.hstack([X, OUTCOME])
FIVE = (*NAMES, "outcome")


def described_terms(
    params: Params, *, release: Release | None = None, names: tuple[str, ...] = FIVE
) -> Terms:
    """Return terms in which what comes behind the four columns is described."""
    fields = [
        field.model_copy(
            update={"role": "cluster" if field.name in NAMES else "describe"}
        )
        for field in numeric_schema(names, -99, 99).fields
    ]
    return drawn(
        params,
        ROWS,
        identities=Identities(analyst=ANALYST, coordinator=COORDINATOR),
        release=release,
        dictionary=(Schema(fields=tuple(fields)),),
    )


@pytest.mark.threat(108)
@pytest.mark.parametrize("ids", [IDS, None], ids=["ids", "no ids"])
@pytest.mark.parametrize("outcome_first", [True, False])
def test_a_described_variable_makes_no_other_rows(
    home: Home, ids: list[str] | None, *, outcome_first: bool
) -> None:
    """Else two profiles of rows that differ by one would be taken off each other."""
    without = described_terms(LLF, release=MEMBERS, names=NAMES)
    beside = described_terms(LLF, release=MEMBERS)
    some = None if ids is None else ids[1:]
    sessions = [(without, X, NAMES), (beside, WITH_OUTCOME, FIVE)]
    if outcome_first:
        sessions.reverse()
    (first, rows, names), (then, others, more) = sessions
    home.runs(first, table(rows, names, ids))
    home.refuses(NEARLY, then, table(others[1:], more, some))
    home.runs(then, table(others, more, ids))


@pytest.mark.threat(108)
@pytest.mark.parametrize("ids", [IDS, None], ids=["ids", "no ids"])
def test_outcomes_of_few_rows_that_changed_are_not_told(
    home: Home, ids: list[str] | None
) -> None:
    terms = described_terms(LLF, release=MEMBERS)
    home.runs(terms, table(WITH_OUTCOME, FIVE, ids))
    later = WITH_OUTCOME.copy()
    later[:3, 4] += 1.0
    home.refuses(NEARLY, terms, table(later, FIVE, ids))


@pytest.mark.threat(155)
def test_geometry_is_the_same_whatever_is_described(home: Home) -> None:
    rows = OmniFC(n_clusters=3)
    home.runs(described_terms(rows, names=NAMES), table())
    home.runs(described_terms(rows), table(WITH_OUTCOME, FIVE))
    home.refuses(
        TOGETHER, described_terms(LLF, release=MEMBERS), table(WITH_OUTCOME, FIVE)
    )


@pytest.mark.threat(155)
def test_profiles_of_described_variables_are_refused_as_others() -> None:
    for params in (OmniFC(n_clusters=3), DataCollaboration(n_clusters=3)):
        with pytest.raises(InvalidParameters, match="cannot be published to everybody"):
            described_terms(params, release=Release(profiles="everybody"))


@pytest.mark.threat(155)
def test_sessions_joined_together_are_asked_about_before_sending(
    tmp_path: Path,
) -> None:
    """Neither had shown anything when the other was checked."""
    history = History(tmp_path)
    rows = history.rows_of(table())
    one, other = (
        Use.from_terms(terms_of(params), find_protocol_name(params), "r1c1", NAMES)
        for params in (LLF, DataCollaboration(n_clusters=3))
    )
    for use in (one, other):
        history.check(use, rows, POLICY)
    history.record(one, rows, POLICY)
    with pytest.raises(GuardRefused, match=TOGETHER):
        history.record(other, rows, POLICY)
    history.record(other, rows, POLICY, is_agreed=True)


def test_slots_of_one_session_at_one_home_raise_no_question(tmp_path: Path) -> None:
    """Other columns of the same people, as ``dc`` gathers them."""
    layout = Layout.lattice(1, 2)
    terms = terms_of(DataCollaboration(n_clusters=3), layout=layout)
    history = History(tmp_path)
    for slot, first in (("r1c1", 0), ("r1c2", 2)):
        names = NAMES[first : first + 2]
        rows = history.rows_of(table(X[:, first : first + 2], names, IDS))
        history.record(Use.from_terms(terms, "one", slot, names), rows, POLICY)
    rows = history.rows_of(table(X[:, :2], NAMES[:2], IDS))
    other = Use.from_terms(terms, "other", "r1c2", NAMES[:2])
    with pytest.raises(GuardRefused, match="with other columns"):
        history.check(other, rows, POLICY)


def stored(home: Path) -> list[tuple[str, bytes]]:
    found = store_of(home).fetch_rows("SELECT kind, content FROM disclosures")
    return [(kind, content) for kind, content in found]


def test_a_table_is_kept_once_however_often_it_is_used(home: Home) -> None:
    for _ in range(3):
        home.runs(terms_of(DataCollaboration(n_clusters=2)), table())
    kinds = sorted(kind for kind, _ in stored(home.path))
    assert kinds == ["rows", "tables", "uses", "uses", "uses"]


@pytest.mark.parametrize("kind", ["rows", "tables", "uses"])
def test_what_cannot_be_read_is_not_taken_as_nothing(home: Home, kind: str) -> None:
    home.runs(terms_of(LLF), table())
    with store_of(home.path).transaction() as database:
        database.execute(
            "UPDATE disclosures SET content = substr(content, 1, 20) WHERE kind = ?",
            (kind,),
        )
    with pytest.raises(CoterieError):
        home.runs(terms_of(LLF), table())
