"""What a browser prints: a result on three pages at most, a sheet on two, annexes apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from support import page_models

from clustering_protocols.numerics.outcomes import outcome_tables
from clustering_protocols.numerics.profiles import FieldProfile, Profile
from coterie_pages.models import RunReport
from coterie_pages.pages import render_html
from tests.system.pages.printing import MOST_PAGES, count_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SIZES = (343, 209, 187, 161)


def field(number: int, n_rows: tuple[int, ...]) -> FieldProfile:
    """A number with quartiles; every fourth one has levels."""
    shared = {
        "name": f"variable{number}",
        "title": f"Clinical variable number {number}",
        "n_rows": n_rows,
        "difference": 2.0 / (1 + number),
    }
    if number % 4 == 3:
        levels = ("never smoked", "former smoker", "current smoker")
        return FieldProfile(**shared, levels=levels, shares=((0.5, 0.3, 0.2),) * 4)
    means = tuple(27.94 + number + 3.1 * place for place in range(4))
    quartiles = tuple((m - 2.31, m + 0.05, m + 1.83) for m in means)
    return FieldProfile(
        **shared, unit="mmol/mol", mean=means, spread=(2.869,) * 4, quartiles=quartiles
    )


def profile(n_rows: tuple[int, ...], *, own: bool) -> Profile:
    fields = tuple(field(number, n_rows) for number in range(14))
    return Profile(
        column=0,
        own=own,
        clusters=(0, 1, 2, 3),
        n_rows=n_rows,
        rounded=False,
        fields=fields,
    )


def report() -> RunReport:
    """What a party of a study like that of 900 patients of diabetes reads."""
    own = (137, 81, 70, 53)
    profiles = (profile(SIZES, own=False), profile(own, own=True))
    described = [{"variable12", "variable11"}]
    return page_models.run_report().model_copy(
        update={
            "sizes": SIZES,
            "own_sizes": own,
            "names": ("MARD", "MOD", "SIDD", "SIRD"),
            "profiles": profiles,
            "outcomes": outcome_tables(profiles[:1], described),
            "left": page_models.left() * 40,
        }
    )


def test_a_party_prints_its_result_on_three_pages(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_html(report()))
    assert count_pages(browser, path) <= MOST_PAGES
    opened = count_pages(browser, path, annex=True)
    assert opened > MOST_PAGES, "what is opened is printed"


def test_a_sheet_is_signed_on_two_pages(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "sheet.html"
    path.write_text(render_html(page_models.sheet()))
    assert count_pages(browser, path) <= 2
