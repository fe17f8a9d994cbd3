"""Figures come with a sentence each, and people write times in several forms."""

from datetime import UTC, datetime
from typing import get_args

import pytest
from support import page_models

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.terms.sections import LEAST_IS_BEST, Rule
from coterie_pages.formatting import (
    AUXILIARY,
    figures_with_values,
    format_number,
    read_moment,
)
from coterie_pages.pages import READING, render_html


def test_every_figure_that_is_shown_has_a_sentence() -> None:
    assert READING.keys() == Figures.model_fields.keys() - AUXILIARY


@pytest.mark.parametrize("rule", sorted(set(get_args(Rule)) - {"criterion"}))
def test_a_sentence_says_the_direction_in_which_the_rule_chooses(rule: str) -> None:
    better = "smaller" if rule in LEAST_IS_BEST else "larger"
    assert f"The {better}, the better" in READING[rule]


def test_a_report_says_how_to_read_what_it_shows_and_no_more() -> None:
    report = page_models.session_report()
    shown = figures_with_values(report.runs)
    assert shown
    for name, sentence in READING.items():
        assert (
            sentence.split(",")[0].replace("'", "&#39;") in render_html(report)
        ) == (name in shown)


def test_a_figure_of_a_later_release_is_shown_without_a_sentence() -> None:
    report = page_models.session_report()
    runs = tuple(
        run.model_copy(update={"figures": {**run.figures, "later_figure": 0.5}})
        for run in report.runs
    )
    assert "later figure" in render_html(report.model_copy(update={"runs": runs}))


@pytest.mark.parametrize(
    ("value", "text"),
    [(999.4, "999"), (999.7, "1,000"), (-999.5, "-1,000"), (1234.5, "1,234")],
)
def test_a_number_around_a_thousand_is_written_out(value: float, text: str) -> None:
    assert format_number(value) == text


# Times that people write


NOW = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("3d", "2026-11-20T12:30:00+00:00"),
        ("12h", "2026-11-23T00:30:00+00:00"),
        ("30m", "2026-11-23T12:00:00+00:00"),
        ("0d", "2026-11-23T12:30:00+00:00"),
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
        (" 2026-11-01T09:30 ", "2026-11-01T09:30:00+00:00"),
        ("2026-11-01T09:30+02:00", "2026-11-01T07:30:00+00:00"),
    ],
)
def test_a_date_a_time_and_an_age_are_read(text: str, meant: str) -> None:
    assert read_moment(text, NOW).isoformat() == meant


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "3", "-3d", "3w", "2026-13-01", "999999d", "٣d"),
        *("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "9" * 400 + "d"),
    ],
)
def test_anything_else_is_refused_with_what_may_be_written(text: str) -> None:
    with pytest.raises(ValueError, match="give a date"):
        read_moment(text, NOW)
