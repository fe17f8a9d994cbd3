"""Survival by cluster, against statsmodels on the pooled rows of a public study."""

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
from coterie_pages.svg import survival_curves

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


def rows_of(line: SurvivalLine, ends: list[float] | None = None) -> np.ndarray:
    """Return a row (time, event) for each that a line counts; events at coarser ends."""
    rows: list[tuple[float, int]] = []
    for bins, event in ((line.events, 1), (line.censored, 0)):
        for end, n_rows in zip(bins.ends, bins.n_rows, strict=True):
            moved = ends is not None and event
            at = ends[np.searchsorted(ends, end)] if moved else end
            rows += [(at, event)] * n_rows
    return np.array(rows)


def test_counts_are_those_of_the_pooled_rows(
    clustered: simulation.Session, study: pd.DataFrame
) -> None:
    [time] = exact(clustered).survival
    labels = np.full(len(study), -1)
    held = clustered.deal.held  # type: ignore[attr-defined]  # see above
    for slot, outcome in clustered.run_to_end().outcomes.items():
        labels[held[slot]] = outcome.labels
    width = MOST / BINS
    bins = np.ceil(study["days"] / width) * width
    for cluster, line in enumerate(time.lines):
        assert line is not None
        for told, event in ((line.events, 1), (line.censored, 0)):
            mine = bins[(labels == cluster) & (study["death"] == event)].dropna()
            begin = 0.0
            for end, n_rows in zip(told.ends, told.n_rows, strict=True):
                assert n_rows == ((mine > begin + 1e-6) & (mine <= end + 1e-6)).sum()
                assert n_rows == 0 or n_rows >= LEAST
                begin = end


@pytest.fixture(scope="module")
def drawn() -> list[SurvivalLine]:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 600)
    times = np.minimum(rng.exponential(np.array([300.0, 600.0, 900.0])[group]), MOST)
    happened = ((rng.random(600) < 0.7) & (times < MOST)).astype(float)
    counts = count_events_and_censored(times, happened, group, MOST, 3)
    lines = [build_survival_line(each, MOST, LEAST, rounded=False) for each in counts]
    return [line for line in lines if line is not None]


def lines_of(clustered: simulation.Session) -> list[SurvivalLine]:
    return [line for line in exact(clustered).survival[0].lines if line is not None]


def test_curves_and_means_are_those_of_statsmodels(
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
        steps = np.diff(np.append(0.0, curve.ends))
        area = steps @ np.append(1.0, survival[:-1])
        assert curve.mean == pytest.approx(area, rel=1e-9)


def test_the_log_rank_test_is_that_of_statsmodels(
    clustered: simulation.Session, drawn: list[SurvivalLine]
) -> None:
    for lines in (lines_of(clustered), drawn):
        common = sorted(set.intersection(*(set(line.events.ends) for line in lines)))
        rows = [rows_of(line, common) for line in lines]
        both = np.vstack(rows)
        groups = np.repeat(range(len(rows)), list(map(len, rows)))
        statistic, p = survdiff(both[:, 0], both[:, 1], groups)
        found = log_rank(lines)
        assert found.degrees == len(lines) - 1
        assert found.statistic == pytest.approx(statistic, rel=1e-9)
        assert found.p == pytest.approx(p, rel=1e-9)


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
    picture = survival_curves("s", "Survival", time, names)
    assert picture.count("too few events to show") == 1
    assert picture.count("<polyline") == len(others) == len(drawn)
    assert log_rank(time.lines) == log_rank(drawn)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"event": "died"}, "no yes-or-no to describe"),
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
