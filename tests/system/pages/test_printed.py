"""What a browser prints: a result on three pages at most, a sheet on two, annexes apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from support import page_models

from clustering_protocols.numerics.outcomes import outcome_tables
from coterie_pages.models import RunReport
from coterie_pages.pages import render_html
from tests.system.pages.printing import MOST_PAGES, count_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def report() -> RunReport:
    """What a party reads of a study of many variables and rounds."""
    shown = page_models.profile()
    fields = tuple(
        field.model_copy(update={"name": f"{field.name} {number}"})
        for number in range(4)
        for field in shown.fields
    )
    shared = shown.model_copy(update={"fields": fields})
    return page_models.run_report().model_copy(
        update={
            "profiles": (shared, shared.model_copy(update={"own": True})),
            "outcomes": outcome_tables([shared], [{"crp 0", "ward 1"}]),
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
