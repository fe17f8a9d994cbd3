"""Survival by cluster agrees with statsmodels on the pooled rows of a public study."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from statsmodels.datasets import heart
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

from clustering_protocols import simulation
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.numerics.survival import (
    BINS,
    Survival,
    SurvivalLine,
    build_survival_line,
    count_events_and_censored,
    kaplan_meier,
    log_rank,
    restricted_mean,
)
from clustering_protocols.protocols.describe import Describe
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.shared_stages.profiles.messages import (
    ProfileMemory,
    parse_profile,
)
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Layout
from coterie_pages.formatting import survival_rows
from coterie_pages.svg import draw_survival

MOST = 1800.0
LEAST = 5
SCHEMA = Schema(
    fields=(
        Field(name="age", unit="years"),
        Field(
            name="days",
            unit="days",
            role="describe",
            event="death",
            constraints=Constraints(minimum=0, maximum=MOST),
        ),
        Field(name="death", type="boolean", role="describe"),
    )
)


@pytest.fixture(scope="module")
def study() -> pd.DataFrame:
    """Return the Stanford heart transplant study of 69 patients, with an unknown time."""
    rows = heart.load_pandas().data[["age", "survival", "censors"]].astype(float)
    rows.columns = list(SCHEMA.names)
    rows.loc[rows.index[0], "days"] = np.nan
    return rows


def played(params: Any, study: pd.DataFrame, **sections: Any) -> simulation.Session:
    layout = Layout.lattice(3)
    deal = simulation.split(study.to_numpy(), layout, 0, dictionary=(SCHEMA,))
    sections = {
        "dictionary": (SCHEMA,),
        "release": Release(profiles="everybody", min_cluster_rows=LEAST),
        **sections,
    }
    session = simulation.Session(params, layout, deal.data, 0, **sections)
    session.deal = deal  # type: ignore[attr-defined]  # where rows went
    while not session.is_over:
        session.play_round()
    return session


@pytest.fixture(scope="module")
def clustered(study: pd.DataFrame) -> simulation.Session:
    return played(
        LosslessFederated(n_clusters=2, max_iter=3), study, preparation=(Preparation(),)
    )


def exact(session: simulation.Session) -> Profile:
    memory = session.memories["r1c1"].get(ProfileMemory)
    assert memory is not None
    return parse_profile(memory.exact)


def rows_of(line: SurvivalLine) -> np.ndarray:
    """Return a row (time, event) for each that a line counts."""
    rows: list[tuple[float, int]] = []
    for bins, event in ((line.events, 1), (line.censored, 0)):
        for end, n_rows in zip(bins.ends, bins.n_rows, strict=True):
            rows += [(end, event)] * n_rows
    return np.array(rows)


def pooled_rows(clustered: simulation.Session, study: pd.DataFrame) -> list[np.ndarray]:
    """Return the rows (time, event) of each cluster, as no party has them."""
    labels = np.full(len(study), -1)
    held = clustered.deal.held  # type: ignore[attr-defined]  # see above
    for slot, outcome in clustered.run_to_end().outcomes.items():
        labels[held[slot]] = outcome.labels
    rows = study[["days", "death"]].to_numpy()
    observed = ~np.isnan(rows).any(axis=1)
    return [rows[(labels == cluster) & observed] for cluster in range(2)]


def counts_of(rows: Sequence[np.ndarray]) -> np.ndarray:
    line = np.repeat(range(len(rows)), list(map(len, rows)))
    return count_events_and_censored(*np.vstack(rows).T, line, MOST, len(rows))


def test_counts_are_those_of_the_pooled_rows(
    clustered: simulation.Session, study: pd.DataFrame
) -> None:
    [time] = exact(clustered).survival
    width = MOST / BINS
    for rows, line in zip(pooled_rows(clustered, study), time.lines, strict=True):
        assert line is not None
        bins = np.ceil(rows[:, 0] / width) * width
        for told, event in ((line.events, 1), (line.censored, 0)):
            mine = bins[rows[:, 1] == event]
            begin = 0.0
            for end, n_rows in zip(told.ends, told.n_rows, strict=True):
                assert n_rows == ((mine > begin + 1e-6) & (mine <= end + 1e-6)).sum()
                assert n_rows == 0 or n_rows >= LEAST or told.n_rows[:-1] == ()
                begin = end


@pytest.fixture(scope="module")
def drawn_rows() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 600)
    times = np.minimum(rng.exponential(np.array([300.0, 600.0, 900.0])[group]), MOST)
    happened = ((rng.random(600) < 0.7) & (times < MOST)).astype(float)
    rows = np.column_stack([times, happened])
    return [rows[group == line] for line in range(3)]


@pytest.fixture(scope="module")
def drawn(drawn_rows: list[np.ndarray]) -> list[SurvivalLine]:
    lines = [
        build_survival_line(c, MOST, LEAST, rounded=False)
        for c in counts_of(drawn_rows)
    ]
    return [line for line in lines if line is not None]


def lines_of(clustered: simulation.Session) -> list[SurvivalLine]:
    return [line for line in exact(clustered).survival[0].lines if line is not None]


def test_curves_and_bands_are_those_of_statsmodels(
    clustered: simulation.Session, drawn: list[SurvivalLine]
) -> None:
    z = ndtri(0.975)
    for line in [*lines_of(clustered), *drawn]:
        rows, curve = rows_of(line), kaplan_meier(line)
        fitted = SurvfuncRight(rows[:, 0], rows[:, 1])
        at = np.searchsorted(fitted.surv_times, curve.ends, side="right")
        survival = np.append(1.0, fitted.surv_prob)[at]
        assert curve.survival == pytest.approx(survival, abs=1e-9)
        error = np.append(0.0, fitted.surv_prob_se)[at]
        inner = (survival > 0) & (survival < 1)
        log = np.log(survival[inner])
        width = z * error[inner] / survival[inner] / log
        for bound, side in ((curve.low, -1), (curve.high, 1)):
            expected = np.exp(-np.exp(np.log(-log) + side * width))
            assert bound[inner] == pytest.approx(expected, abs=1e-9)


def test_curves_means_and_the_log_rank_test_are_those_of_the_pooled_rows(
    clustered: simulation.Session, study: pd.DataFrame, drawn_rows: list[np.ndarray]
) -> None:
    """Up to what 20 bins leave open; curves of small lines merge these further."""
    [time] = exact(clustered).survival
    of_study = pooled_rows(clustered, study)
    for number, rows in enumerate((of_study, drawn_rows)):
        counts, width = counts_of(rows), MOST / BINS
        for line_rows, line_counts in zip(rows, counts, strict=True):
            fitted = SurvfuncRight(*line_rows.T)
            steps = np.append(1.0, fitted.surv_prob)
            ends = np.append(fitted.surv_times, MOST)
            area = np.diff(ends, prepend=0.0) @ steps
            later = area - np.cumsum(np.diff(ends, prepend=0.0) * steps)[:-1]
            d, n = fitted.n_events, fitted.n_risk
            error = np.sqrt(np.square(later) @ (d / (n * np.maximum(n - d, 1))))
            mean, deviation = restricted_mean(line_counts, MOST)
            assert mean == pytest.approx(area, abs=width / 2)
            assert deviation == pytest.approx(error, rel=0.05)
            line = build_survival_line(line_counts, MOST, LEAST, rounded=False)
            assert line is not None
            assert (line.mean, line.deviation) == (mean, deviation)
            curve = kaplan_meier(line)
            at = np.searchsorted(fitted.surv_times, curve.ends, side="right")
            assert curve.survival == pytest.approx(steps[at], abs=0.1)
        groups = np.repeat(range(len(rows)), list(map(len, rows)))
        expected, p = survdiff(*np.vstack(rows).T, groups)
        statistic, degrees = log_rank(counts)
        assert degrees == len(rows) - 1
        if number == 0:  # four of ten events lie in the first bin
            assert (time.statistic, time.degrees) == (statistic, degrees)
            assert time.p == pytest.approx(p, abs=0.2)
        else:
            assert statistic == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("first_last", [0.0, MOST])
def test_clusters_of_unequal_sizes_with_one_distribution_do_not_differ(
    first_last: float,
) -> None:
    """Observations end from ``first_last`` on."""
    rng = np.random.default_rng(1)
    rows = []
    for size in (600, 200, 60):
        times = -600.0 * np.log(1.0 - (np.arange(size) + 0.5) / size)
        last = rng.permutation(np.linspace(first_last, MOST, size))
        rows.append(np.column_stack([np.minimum(times, last), times <= last]))
    counts = counts_of(rows)
    lines = [build_survival_line(c, MOST, 10, rounded=False) for c in counts]
    for line in lines:
        assert line is not None
        assert line.mean == pytest.approx(600.0 * (1 - np.exp(-3.0)), rel=0.03)
    statistic, degrees = log_rank(counts)
    time = Survival(
        name="t",
        event="e",
        most=MOST,
        lines=lines,
        statistic=statistic,
        degrees=degrees,
    )
    assert time.p is not None
    assert time.p > 0.8


def test_few_rows_without_the_event_stay_at_risk() -> None:
    rows = np.column_stack([np.linspace(1.0, 1500.0, 150), np.ones(150)])
    rows[:9] = MOST, 0.0
    line = build_survival_line(counts_of([rows])[0], MOST, 10, rounded=False)
    assert line is not None
    assert line.count_at_risk(np.zeros(1))[0] == 150
    assert kaplan_meier(line).survival[-1] == pytest.approx(9 / 150)


def test_outside_means_and_tests_have_few_digits(clustered: simulation.Session) -> None:
    for told in map(Profile.model_validate, clustered.profiles):
        [time] = told.survival
        numbers = [line.deviation for line in time.lines if line is not None]
        for value in (*numbers, time.statistic):
            assert value == float(f"{value:.1e}")
        for line in time.lines:
            assert line is not None
            assert line.mean is not None
            assert line.mean % 10.0 == 0.0


def test_outside_all_counts_are_multiples_of_the_least_rows(
    clustered: simulation.Session, study: pd.DataFrame
) -> None:
    """Any two tables, of this session or others, differ by none or so many rows."""
    told = [Profile.model_validate(each) for each in clustered.profiles]
    told += [
        Profile.model_validate(each) for each in played(Describe(), study).profiles
    ]
    for profile in told:
        [time] = profile.survival
        for line in time.lines:
            assert line is not None
            counts = np.array([*line.events.n_rows, *line.censored.n_rows])
            assert (counts % LEAST == 0).all()
            assert counts.sum() > 0


@pytest.mark.parametrize(
    ("events", "ends", "told"),
    [
        ([1, 1, 1, 1, 1] + [0] * 15, [5, *range(6, 21)], [5] + [0] * 15),
        ([5] + [1] * 4 + [0] * 15, [*range(5, 21)], [9] + [0] * 15),
        ([4] + [0] * 19, [20], [0]),
        ([0] * 10 + [6] + [0] * 8 + [2], [*range(1, 11), 20], [0] * 10 + [8]),
    ],
)
def test_bins_merge_until_they_hold_enough_rows(
    events: list[int], ends: list[int], told: list[int]
) -> None:
    counts = np.array([events, [20] * BINS])
    line = build_survival_line(counts, float(BINS), LEAST, rounded=False)
    assert line is not None
    assert line.events.ends == tuple(map(float, ends))
    assert line.events.n_rows == tuple(told)
    assert build_survival_line(counts[:, :0], float(BINS), LEAST, rounded=False) is None


def test_a_line_with_too_few_events_says_so_and_is_not_compared(
    drawn: list[SurvivalLine],
) -> None:
    counts = np.array([[0] * 9 + [LEAST - 1] + [0] * 10, [20] * BINS])
    few = build_survival_line(counts, MOST, LEAST, rounded=False)
    assert few is not None
    assert not few.shows_events
    time = Survival(name="days", event="death", most=MOST, lines=(few, *drawn))
    rows = [row for row in time.table if row[0] == 0]
    assert rows == [(0, MOST, 400.0, "too few events to show", "", "", "")]
    names = ["cluster 0", "cluster 1", "cluster 2", "cluster 3"]
    first, *others = survival_rows(time, names)
    assert first == ("cluster 0", "400", "too few events to show", "–")
    picture = draw_survival("s", "Survival", time, names)
    assert picture.count("too few events to show") == 1
    assert picture.count("<polyline") == len(others) == len(drawn)
    assert few.mean is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"event": "died"}, "not a yes-or-no field to describe"),
        ({"role": "cluster"}, "number to describe"),
        ({"constraints": Constraints(minimum=0)}, "and a maximum"),
        ({"constraints": Constraints(minimum=-1, maximum=3)}, "with minimum 0"),
    ],
)
def test_a_time_needs_a_range_and_its_event(changes: dict[str, Any], why: str) -> None:
    time = SCHEMA.field("days").model_dump() | changes
    with pytest.raises(ValueError, match=why):
        Schema(fields=(SCHEMA.fields[0], Field(**time), SCHEMA.fields[2]))


def test_what_others_send_is_no_survival() -> None:
    bins = {"ends": (2.0, 1.0), "n_rows": (5, 5)}
    line = {"events": bins, "censored": bins}
    with pytest.raises(ValueError, match="ascending"):
        Survival.model_validate(
            {"name": "t", "event": "e", "most": 2.0, "lines": (line,)}
        )
