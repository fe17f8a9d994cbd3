"""The house may only get smaller: `benchmarks/size.toml` has the largest figures."""

import pytest

from benchmarks import size


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    return size.measure()


def test_the_changelog_counts_the_risk_codes(figures: dict[str, int]) -> None:
    changelog = (size.ROOT / "CHANGELOG.md").read_text()
    assert f"There are {figures['risk_codes']} risk codes" in changelog


@pytest.mark.parametrize("name", size.DESCRIPTIONS)
def test_nothing_grows_beyond_its_limit(name: str, figures: dict[str, int]) -> None:
    limit = size.read_limits()[name]
    assert figures[name] <= limit, (
        f"{size.DESCRIPTIONS[name]}: {figures[name]:,}, and at most {limit:,} are "
        "allowed: take something away, or raise the limit and say why on its line"
    )
