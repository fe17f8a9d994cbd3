"""Intervals and tests of described variables equal SciPy's on the pooled rows."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.outcomes import (
    OutcomeTable,
    outcome_table,
    outcome_tables,
)
from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.shared_stages.profiles.profile import profile_of
from clustering_protocols.shared_stages.profiles.totals import (
    ProfileFields,
    ProfileTotals,
    own_share,
)
from clustering_protocols.terms.schema import Schema
from tests.protocols.profiling.test_sums import added_up

RNG = np.random.default_rng(11)
N = 400
LABELS = np.where(RNG.random(N) < 0.02, 3, RNG.integers(0, 3, N))
FRAME = pd.DataFrame(
    {
        "hba1c": RNG.normal(60, 12, N),
        "died": (RNG.random(N) < 0.1 + 0.1 * LABELS).astype(float),
        "site": RNG.integers(0, 4, N).astype(float),
        "cost": RNG.gamma(2.0, 900.0, N) * (1 + 0.2 * LABELS),
        "since": RNG.integers(10_000, 18_000, N).astype(float),
    }
).mask(RNG.random((N, 5)) < 0.1)
SCHEMA = Schema.model_validate(
    {
        "fields": [
            {"name": "hba1c"},
            {"name": "died", "type": "boolean", "role": "describe"},
            {
                "name": "site",
                "type": "string",
                "role": "describe",
                "categories": ["a", "b", "c", "d", "of nobody"],
            },
            {"name": "cost", "role": "describe", "unit": "EUR"},
            {"name": "since", "type": "date", "role": "describe"},
        ]
    }
)


@cache
def profile(*, rounded: bool) -> Profile:
    totals = added_up(FRAME.to_numpy(), LABELS, SCHEMA)
    return profile_of(totals, 0, own=False, rounded=rounded)


def table(*, rounded: bool) -> OutcomeTable:
    found = outcome_table(profile(rounded=rounded), SCHEMA.described_names)
    assert found is not None
    return found


def of(found: OutcomeTable) -> dict[str, Any]:
    return {field.name: field for field in found.fields}


def groups(name: str) -> list[pd.Series]:
    """Return the values of the lines: clusters, those too small together, last."""
    told = profile(rounded=False)
    assert told.others, "else no line is of several clusters"
    line = pd.Series(LABELS).replace(dict.fromkeys(told.others, 9))
    values = FRAME[name]
    return [values[line == each].dropna() for each in [*told.clusters, 9]]


@pytest.mark.parametrize("name", ["cost", "since"])
def test_an_analysis_of_variance_is_scipys_of_the_pooled_rows(name: str) -> None:
    found, lines = of(table(rounded=False))[name], groups(name)
    expected = stats.f_oneway(*lines)
    assert found.test == "anova"
    np.testing.assert_allclose(found.statistic, expected.statistic, rtol=1e-9)
    np.testing.assert_allclose(found.p, expected.pvalue, rtol=1e-9)
    assert found.degrees == (len(lines) - 1, sum(map(len, lines)) - len(lines))
    for interval, values in zip(found.means, lines, strict=True):
        ends = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        np.testing.assert_allclose(interval, ends, rtol=1e-9)


@pytest.mark.parametrize("name", ["died", "site"])
def test_a_test_of_levels_is_scipys_of_the_pooled_rows(name: str) -> None:
    found, lines = of(table(rounded=False))[name], groups(name)
    counts = pd.DataFrame([line.value_counts() for line in lines]).fillna(0)
    expected = stats.chi2_contingency(counts, correction=False)
    np.testing.assert_allclose(found.statistic, expected.statistic, rtol=1e-9)
    np.testing.assert_allclose(found.p, expected.pvalue, rtol=1e-9)
    assert found.degrees == (expected.dof,)
    assert found.n_small == np.count_nonzero(expected.expected_freq < 5)
    for intervals, values in zip(found.shares, lines, strict=True):
        assert len(intervals) == len(found.levels)
        for level, interval in enumerate(intervals):
            one = stats.binomtest(int((values == level).sum()), len(values))
            ends = one.proportion_ci(method="wilson")
            np.testing.assert_allclose(interval, ends, rtol=1e-9, atol=1e-12)


def test_what_is_rounded_is_tested_as_it_is_read() -> None:
    told, found = profile(rounded=True), of(table(rounded=True))
    fields = {field.name: field for field in told.fields}
    cost = fields["cost"]
    lines: Any = list(zip(cost.n_rows, cost.mean, cost.spread, strict=True))
    # rows that have exactly these counts, means and standard deviations
    rows = [
        mean + spread * (RNG.permutation(n) - (n - 1) / 2) / np.sqrt((n * n - 1) / 12)
        for n, mean, spread in lines
    ]
    expected = stats.f_oneway(*rows)
    np.testing.assert_allclose(found["cost"].statistic, expected.statistic, rtol=1e-9)
    np.testing.assert_allclose(found["cost"].p, expected.pvalue, rtol=1e-9)
    for interval, values in zip(found["cost"].means, rows, strict=True):
        ends = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        np.testing.assert_allclose(interval, ends, rtol=1e-9)
    died = fields["died"]
    pairs: Any = zip(died.n_rows, died.shares, strict=True)
    counts = [n * np.array(shares) for n, shares in pairs if shares is not None]
    expected = stats.chi2_contingency(counts, correction=False)
    np.testing.assert_allclose(found["died"].statistic, expected.statistic, rtol=1e-9)
    np.testing.assert_allclose(found["died"].p, expected.pvalue, rtol=1e-9)
    note = table(rounded=True).notes[-1]
    assert "rounded values" in note
    assert note.endswith("rounding alone can make p small.")


def test_a_variable_with_one_value_has_nothing_to_compare() -> None:
    schema = Schema.model_validate(
        {"fields": [{"name": "hba1c"}, {"name": "dose", "role": "describe"}]}
    )
    labels = np.repeat([0, 1, 2], [220, 90, 50])
    known = added_up(np.full((360, 2), 0.1), labels, schema, n_clusters=3)
    for rounded in (False, True):
        found = profile_of(known, 0, own=False, rounded=rounded)
        assert found.fields[1].spread == (0.0, 0.0, 0.0)
        [outcome] = outcome_table(found, {"dose"}).fields  # type: ignore[union-attr]  # described
        assert outcome.p is None


def test_clustered_variables_have_no_test_and_that_is_said() -> None:
    found = table(rounded=False)
    assert set(of(found)) == set(SCHEMA.described_names)
    assert "Clustered variables have no test" in found.notes[0]
    assert "not corrected" in found.notes[1]
    assert any("count as one group" in note for note in found.notes)
    assert outcome_table(profile(rounded=False), ()) is None
    assert outcome_tables([profile(rounded=False)], [()]) == ()


@pytest.mark.parametrize(
    ("n", "mean", "spread"),
    [((10, None), (1.0, None), (2.0, None)), ((10, 12), (1.0, 1.0), (0.0, 0.0))],
    ids=["one line", "nothing varies"],
)
def test_where_nothing_can_be_compared_there_is_no_p(
    n: Any, mean: Any, spread: Any
) -> None:
    field = FieldProfile(name="x", n_rows=n, mean=mean, spread=spread, difference=0.0)
    told = Profile(
        column=0, own=False, clusters=(0, 1), n_rows=(20, 20), rounded=False,
        fields=(field,),
    )  # fmt: skip
    found = outcome_table(told, ["x"])
    assert found is not None
    assert found.fields[0].p is None
    assert found.fields[0].statistic is None
    assert outcome_table(told, ["x"]).model_validate_json(found.model_dump_json())  # type: ignore[union-attr]  # there is one


def test_sums_of_described_variables_that_cannot_be_are_refused() -> None:
    """A party that lies about an outcome is held to counts and rows, as of others."""
    known = ProfileTotals(
        fields=ProfileFields(SCHEMA), n_clusters=4, n_rows=N, n_members=1, smallest=10
    )
    data = MatrixSource(FRAME, list(FRAME), gaps=True)
    known = known.with_sum(own_share(known, data, LABELS))
    honest = own_share(known, data, LABELS)
    assert known.fits_next_sum(honest.view(np.uint64))
    died = known.n_clusters * len(known.fields.numeric)
    for place, by in ((0, N), (died, N), (died, -N)):
        lie = honest.copy()
        lie[place] += by
        assert not known.fits_next_sum(lie.view(np.uint64))
