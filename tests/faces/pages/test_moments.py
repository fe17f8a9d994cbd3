"""Times that people write."""

from datetime import UTC, datetime

import pytest

from coterie_pages.formatting import read_moment

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
