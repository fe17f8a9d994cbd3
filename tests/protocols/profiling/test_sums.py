"""Profiles equal the statistics that pandas computes from the pooled rows."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.profiles import SHARES, FieldProfile, Profile
from clustering_protocols.shared_stages.profiles import totals as sums
from clustering_protocols.shared_stages.profiles.profile import (
    OTHER_LEVELS,
    _merge_rare_levels,
    are_close,
    profile_of,
)
from clustering_protocols.shared_stages.profiles.totals import (
    PARTS,
    SIZE,
    Grid,
    ProfileFields,
    ProfileTotals,
    choose_rounding_step,
    own_share,
)
from clustering_protocols.shared_stages.statistics.powers import LOWEST_POWER
from clustering_protocols.terms.schema import Constraints, Field, Schema

SCHEMA = Schema(
    fields=(
        Field(
            name="age", type="integer", constraints=Constraints(minimum=0, maximum=110)
        ),
        Field(name="dose"),
        Field(name="ward", type="string", categories=("a", "b", "c", "d")),
        Field(name="smokes", type="boolean"),
        Field(name="admitted", type="date"),
        Field(name="constant"),
    )
)
N_CLUSTERS = 4
SMALLEST = 10


def _rows(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    labels = rng.choice(N_CLUSTERS, n, p=[0.5, 0.35, 0.13, 0.02])
    rows = np.column_stack(
        [
            rng.integers(20, 90, n),
            rng.lognormal(3.0 + labels, 1.0, n),
            rng.choice(4, n, p=[0.6, 0.3, 0.09, 0.01]),
            rng.integers(0, 2, n),
            rng.integers(15_000, 20_000, n),
            np.full(n, 0.1234567891234),
        ]
    ).astype(np.float64)
    gaps = rng.random(rows.shape) < 0.07
    rows[gaps] = np.nan
    return rows, labels


def added_up(
    rows: np.ndarray,
    labels: np.ndarray,
    schema: Schema = SCHEMA,
    n_clusters: int = N_CLUSTERS,
) -> ProfileTotals:
    """Return the totals of three parties that hold every third row each."""
    known = ProfileTotals(
        fields=ProfileFields(schema),
        n_clusters=n_clusters,
        n_rows=len(rows),
        n_members=3,
        smallest=SMALLEST,
    )
    parts = [
        (MatrixSource(rows[i::3], columns=schema.names, gaps=True), labels[i::3])
        for i in range(3)
    ]
    for which in range(1, sums.N_SUMS + 1):
        shares = [own_share(known, *part) for part in parts]
        assert len(shares[0]) == sums.sum_size(known.fields, n_clusters, which)
        total = np.sum(shares, axis=0)
        assert known.fits_next_sum(total.view(np.uint64))
        known = known.with_sum(total)
    return known


@pytest.fixture(scope="module")
def pooled() -> tuple[ProfileTotals, pd.DataFrame]:
    """Return complete sums, and the pooled rows with the line of each."""
    rows, labels = _rows()
    known = added_up(rows, labels)
    frame = pd.DataFrame(rows, columns=list(SCHEMA.names))
    frame["line"] = known.lines.line_by_cluster(N_CLUSTERS)[labels]
    return known, frame


def field(profile: Profile, name: str) -> FieldProfile:
    return next(each for each in profile.fields if each.name == name)


@pytest.mark.parametrize("name", ["age", "dose", "admitted", "constant"])
def test_means_spreads_and_counts_are_those_of_a_groupby(
    pooled: tuple[ProfileTotals, pd.DataFrame], name: str
) -> None:
    known, frame = pooled
    found = field(profile_of(known, 0, own=False, rounded=False), name)
    groups = frame.groupby("line")[name]
    assert list(found.n_rows) == groups.count().tolist()
    np.testing.assert_allclose(found.mean, groups.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.spread, groups.std(ddof=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["age", "dose", "admitted"])
def test_quartiles_are_those_of_the_values_cut_to_the_grid(
    pooled: tuple[ProfileTotals, pd.DataFrame], name: str
) -> None:
    known, frame = pooled
    found = field(profile_of(known, 0, own=False, rounded=False), name)
    column = list(known.fields.numeric).index(SCHEMA.names.index(name))
    grid, is_whole = known.grid, known.grid.whole[column]
    for line, values in frame.groupby("line")[name]:
        low, width = grid.low[line, column], grid.width[line, column]
        part = np.floor((values.dropna() - low) / width)
        cut = low + part * width + ((width - 1) / 2 if is_whole else width / 2)
        cut = cut.mask(part > 63, np.inf).mask(part < 0, -np.inf)
        expected = cut.quantile([0.25, 0.5, 0.75])
        np.testing.assert_allclose(found.quartiles[line], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("values", "n_shown"),
    [
        (np.random.default_rng(0).lognormal(7, 1.8, 900), 0),
        (np.random.default_rng(0).standard_cauchy(900), 0),
        (np.random.default_rng(0).lognormal(1, 0.8, 900), 2),
        (1e10 + np.random.default_rng(0).normal(size=900), 2),
        (np.random.default_rng(0).normal(size=900) + 50 * (np.arange(900) > 300), 2),
    ],
    ids=["costs", "Cauchy", "skewed", "offset", "clusters far apart"],
)
def test_quartiles_are_near_those_of_the_rows_or_omitted(
    values: np.ndarray, n_shown: int
) -> None:
    rows, labels = np.zeros((900, 6)), (np.arange(900) > 300) * 1
    rows[:, 1] = values
    known = added_up(rows, labels)
    for rounded in (False, True):
        found = field(profile_of(known, 0, own=False, rounded=rounded), "dose")
        assert len([q for q in found.quartiles if q is not None]) == n_shown
        for line, quartiles in enumerate(found.quartiles):
            if quartiles is not None:
                true = np.quantile(values[labels == line], [0.25, 0.5, 0.75])
                limit = (true[2] - true[0]) / (3 if rounded else 7)
                np.testing.assert_allclose(quartiles, true, rtol=0, atol=limit)


def test_no_quartile_lies_outside_the_declared_range() -> None:
    rows, labels = _rows()
    rows[:, 0] = np.where(rows[:, 0] > 40, 110, 0)
    found = profile_of(added_up(rows, labels), 0, own=False, rounded=False)
    for quartiles in field(found, "age").quartiles:
        assert quartiles is not None
        assert quartiles[0] >= 0
        assert quartiles[2] <= 110


def test_a_rounded_mean_near_zero_has_no_sign() -> None:
    rows, labels = np.zeros((400, 6)), np.arange(400) % 2
    rows[:, 1] = np.where(np.arange(400) // 2 % 2, 1.0, -1.001)
    told = profile_of(added_up(rows, labels), 0, own=False, rounded=True)
    assert field(told, "dose").cells == ("0 ± 1", "0 ± 1")


def test_shares_of_levels_are_those_of_value_counts(
    pooled: tuple[ProfileTotals, pd.DataFrame],
) -> None:
    known, frame = pooled
    found = field(profile_of(known, 0, own=False, rounded=False), "ward")
    expected = frame.groupby("line")["ward"].value_counts(normalize=True).unstack()
    np.testing.assert_allclose(np.array(found.shares), expected.fillna(0.0), rtol=1e-12)
    assert found.levels == ("a", "b", "c", "d")


@pytest.mark.threat(107)
def test_small_clusters_are_one_line_with_the_next_smallest(
    pooled: tuple[ProfileTotals, pd.DataFrame],
) -> None:
    known, _ = pooled
    profile = profile_of(known, 0, own=False, rounded=False)
    assert known.cluster_sizes[3] < SMALLEST
    assert (profile.clusters, profile.others) == ((0, 1), (2, 3))
    assert profile.n_rows[-1] == known.cluster_sizes[2] + known.cluster_sizes[3]


def test_what_is_told_outside_are_multiples_of_a_twentieth(
    pooled: tuple[ProfileTotals, pd.DataFrame],
) -> None:
    known, _ = pooled
    told = profile_of(known, 0, own=False, rounded=True)
    for name in ("ward", "smokes"):
        shares = SHARES * np.array(field(told, name).shares)
        np.testing.assert_allclose(shares, np.rint(shares), atol=1e-9)
    exact = field(profile_of(known, 0, own=False, rounded=False), "dose")
    dose = field(told, "dose")
    assert dose.mean != exact.mean
    assert len({f"{each:.6g}" for each in dose.mean}) == len(dose.mean)
    assert "other levels" in field(told, "ward").levels


@pytest.mark.threat(107)
def test_one_more_row_changes_no_count_that_outsiders_read() -> None:
    rows, labels = np.zeros((151, 6)), np.repeat([0, 1, 2], [50, 49, 52])
    rows[::9, 0] = np.nan
    fewer, more = added_up(rows[:150], labels[:150]), added_up(rows, labels)
    told = [profile_of(each, 0, own=False, rounded=True) for each in (fewer, more)]
    exact = [profile_of(each, 0, own=False, rounded=False) for each in (fewer, more)]
    assert [each.n_rows for each in exact] == [(50, 49, 51), (50, 49, 52)]
    assert [each.n_rows for each in told] == [(50, 50, 50)] * 2
    assert field(exact[0], "age").n_rows == (44, 44, 45)
    assert field(told[0], "age").n_rows == (45, 45, 45)


@pytest.mark.threat(107)
def test_nothing_is_added_of_fields_with_few_values() -> None:
    rows, labels = _rows()
    rows[:, 1] = np.where(np.arange(len(rows)) < 5, rows[:, 1], np.nan)
    known = added_up(rows, labels)
    assert not known.has_enough_values[:, 1].any()
    assert (known.sums[sums.VALUES - 1].reshape(N_CLUSTERS, -1)[:, 1] == 0).all()
    found = field(profile_of(known, 0, own=False, rounded=False), "dose")
    assert set(found.mean) == {None}


def test_rows_that_are_too_few_together_have_no_line() -> None:
    rows, labels = _rows(8)
    profile = profile_of(added_up(rows, labels), 0, own=False, rounded=False)
    assert profile.n_rows == ()
    assert profile.fields == ()


@pytest.mark.parametrize("size", [0.2, 2.0, 20.0, 2000.0])
def test_members_whose_last_digits_differ_round_alike(size: float) -> None:
    near = (np.nextafter(size, 0.0), size, np.nextafter(size, 1e9))
    steps = [
        choose_rounding_step(np.array([9]), np.array([each]), np.zeros(1))
        for each in near
    ]
    assert steps == [size / SHARES] * 3


def _told(**entries: object) -> Profile:
    """Return a profile of one field in two lines, as a leader tells it."""
    numbers = {"mean": (20_000.0, 20_300.0), "spread": (200.0, 200.0)}
    named = {"name": "x", "n_rows": (50, 60), "difference": 1.0}
    return Profile.model_validate(
        {
            "column": 0,
            "own": False,
            "clusters": (0, 1),
            "n_rows": (50, 60),
            "rounded": True,
            "fields": ({**named, **numbers, **entries},),
        }
    )


@pytest.mark.threat(109)
@pytest.mark.parametrize(
    ("true", "told"),
    [(20_000.0, 20_010.0), (2e-10, -9e-10), (0.0, 1e-10)],
    ids=["a date", "small units", "nothing"],
)
def test_a_told_mean_that_is_one_step_off_is_another_profile(
    true: float, told: float
) -> None:
    assert are_close(_told(mean=(true, 1.0)), _told(mean=(true * (1 + 1e-9), 1.0)))
    assert not are_close(_told(mean=(true, 1.0)), _told(mean=(told, 1.0)))


@pytest.mark.threat(109)
@pytest.mark.parametrize(
    "entries",
    [
        {"mean": (1.0,)},
        {"spread": ()},
        {"n_rows": (50,)},
        {"quartiles": (None,)},
        {"shares": ((0.5,), (0.5,))},
        {"mean": (), "spread": (), "levels": ("a", "b"), "shares": ((1.0,), None)},
        {"mean": (1e300, 1.0), "is_date": True},
        {"quartiles": ((0.0, 1e19, None), None), "is_date": True},
    ],
    ids="-".join,
)
def test_a_profile_that_no_reader_could_show_is_none(
    entries: dict[str, object],
) -> None:
    with pytest.raises(ValidationError):
        _told(**entries)


def test_the_grid_is_numpys_histogram_and_what_lies_beyond_it() -> None:
    """A narrow field, one with a single value, and one that is nowhere known."""
    rng = np.random.default_rng(1)
    narrow = np.concatenate([rng.uniform(-1.0, 1.0, 300), [0.4, -0.5, np.inf, -np.inf]])
    values = np.column_stack([narrow, np.full(304, 3.0), np.full(304, np.nan)])
    grid = Grid.from_ends(
        np.array([[-0.4, 3.0, -0.4]]),
        np.array([[0.4, 3.0, 0.4]]),
        np.zeros(3, dtype=np.bool_),
    )
    parts = grid.parts_of(values, np.zeros(len(values), np.int64))
    counts = [np.bincount(part, minlength=SIZE) for part in parts.T]
    inside, _ = np.histogram(narrow, PARTS, (-0.4, 0.4))
    beyond = (narrow < -0.4).sum(), (narrow > 0.4).sum()
    assert counts[0].tolist() == [beyond[0], *inside, beyond[1]]
    assert counts[1].tolist() == [0, 304, *[0] * PARTS]
    assert counts[2][0] == 304


def test_a_field_of_zeros_is_bounded_by_the_least_power() -> None:
    rows, labels = _rows()
    rows[:, 5] = 0.0
    known = added_up(rows, labels)
    column = list(known.fields.numeric).index(SCHEMA.names.index("constant"))
    assert known.value_bound[column] == 2.0**LOWEST_POWER
    assert known.deviation_bound[column] == 2.0**LOWEST_POWER


def counted(*lines: list[int]) -> tuple[list[list[int] | None], list[str]]:
    """Return what is told of lines of levels a, b, c …, with groups of ten and more."""
    names = list("abcdef")[: len(lines[0])]
    counts, names, told = _merge_rare_levels(np.array(lines), names, 10)
    return [c.tolist() if t else None for c, t in zip(counts, told, strict=True)], names


@pytest.mark.threat(154)
@pytest.mark.parametrize("n_yes", [0, 1, 9, 13, 21, 22])
def test_of_yes_and_no_nothing_is_told_where_either_is_rare(n_yes: int) -> None:
    """One person of a line of 22, or nobody: the same is told, nothing."""
    told, names = counted([22 - n_yes, n_yes], [30, 40])
    assert told == [None, [30, 40]]
    assert names == ["a", "b"]


@pytest.mark.threat(154)
@pytest.mark.parametrize("smallest", [5, 10])
@pytest.mark.parametrize("n_levels", [2, 3, 4])
def test_every_group_that_is_told_holds_enough_rows(
    n_levels: int, smallest: int
) -> None:
    """Pairs of lines of up to 36 rows: nobody and somebody are told alike."""
    lines = np.array(
        [c for c in product(range(0, 22, 3), repeat=n_levels) if 10 <= sum(c) <= 36]
    )
    n_told = 0
    for shift in (0, 1, len(lines) // 2):
        for pair in zip(lines, np.roll(lines, shift, axis=0), strict=True):
            counts, names, told = _merge_rare_levels(
                np.array(pair), list("abcd")[:n_levels], smallest
            )
            shown, rows = counts[told], np.array(pair)[told]
            n_told += len(shown)
            assert (shown.sum(axis=1) == rows.sum(axis=1)).all()
            assert shown.min(initial=smallest) >= smallest
            assert not len(shown) or len(names) >= 2
            has_rare = (rows < smallest).any()
            assert not len(shown) or (names[-1] == OTHER_LEVELS) == has_rare
    assert n_told


def test_the_next_rarest_level_fills_the_group_of_rare_ones() -> None:
    assert counted([40, 30, 12, 3]) == ([[40, 30, 15]], ["a", "b", "other levels"])
    told, names = counted([40, 6, 5, 0], [40, 0, 0, 11])
    assert (told, names) == ([[40, 11], [40, 11]], ["a", "other levels"])


def test_a_level_that_is_rare_in_one_line_is_merged_in_all() -> None:
    told, names = counted([40, 30, 12, 3], [40, 30, 12, 20])
    assert names == ["a", "b", "other levels"]
    assert told == [[40, 30, 15], [40, 30, 32]]
    told, names = counted([30, 20, 10], [12, 1, 0])
    assert (told, names) == ([[30, 20, 10], None], ["a", "b", "c"])
    told, names = counted([30, 12, 0], [0, 12, 30])
    assert (told, names[-1:]) == ([None, None], ["other levels"])
