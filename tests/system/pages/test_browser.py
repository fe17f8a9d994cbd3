"""Pages in a real browser, offline: they ask for nothing, and fit screen and paper.

The pictures of the documentation are taken here, with
``COTERIE_WRITE_PICTURES=1 pytest tests/system/pages/test_browser.py``.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from sklearn.datasets import load_wine
from support import page_models

from coterie_pages.pages import render_html
from party_sdk.lab.trial import try_table
from tests.system.pages.looking import Look, looking

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
_MOST_BYTES = 200_000
MODELS = {
    "terms": page_models.sheet(),
    "report": page_models.run_report(),
    "session": page_models.session_report(),
    "empty": page_models.empty_session(),
}


@contextmanager
def opened(browser: Browser, path: Path, width: int, **how: object) -> Iterator[Look]:
    size = {"width": width, "height": 900}
    with looking(browser, path.as_uri(), offline=True, viewport=size, **how) as look:
        look.at("")
        yield look


@pytest.fixture(params=MODELS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.html"
    path.write_text(render_html(MODELS[request.param]))
    return path


def test_a_page_asks_for_nothing_and_fits_every_window(
    browser: Browser, written: Path
) -> None:
    """At 200 % a window of 1,000 points has room for 500; a telephone has 360."""
    with opened(browser, written, 1000) as found:
        assert found.page.title()
        assert found.page.locator("h1").is_visible()
        found.check()
    for width, scale in ((500, 2), (360, 1)):
        with opened(browser, written, width, device_scale_factor=scale) as found:
            root = found.page.locator("html")
            assert root.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_a_page_follows_a_dark_screen_and_is_light_on_paper(
    browser: Browser, written: Path
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, written, 1000, color_scheme="dark") as found:
        assert found.page.evaluate(ground) == "rgb(20, 24, 29)"
        found.page.emulate_media(media="print")
        assert found.page.evaluate(ground) == "rgb(255, 255, 255)"
        assert found.page.pdf(format="A4").startswith(b"%PDF")


def test_a_script_that_came_in_would_not_run(browser: Browser, tmp_path: Path) -> None:
    """Even if a text were not escaped: the page's own policy forbids it."""
    path = tmp_path / "page.html"
    script = (
        "<script>document.title = 'owned'</script><img src='https://example.com/x'>"
    )
    path.write_text(render_html(MODELS["terms"]).replace("</main>", f"{script}</main>"))
    refused = []
    with looking(browser, path.as_uri(), offline=True) as look:
        look.page.on("requestfailed", lambda r: refused.append((r.url, r.failure)))
        assert "owned" not in look.at("").title()
        assert refused == [("https://example.com/x", "csp")]
        assert len(look.messages) == 2  # the browser says what it refused


if os.environ.get("COTERIE_WRITE_PICTURES") == "1":

    @pytest.mark.parametrize(
        ("name", "begin", "end"),
        [
            ("terms", "body", "h2 >> nth=2"),
            ("report", "h2 >> nth=1", "[aria-label^='Profile of']"),
        ],
    )
    def test_pictures_of_the_documentation_are_written(
        browser: Browser, tmp_path: Path, name: str, begin: str, end: str
    ) -> None:
        wine, path = tmp_path / "wine.csv", tmp_path / "page.html"
        load_wine(as_frame=True).data.to_csv(wine, index=False)
        terms = name == "terms"
        path.write_text(
            render_html(MODELS["terms"] if terms else try_table(wine).report)
        )
        with opened(browser, path, 900) as found:
            top, bottom = (
                found.page.locator(place).bounding_box() for place in (begin, end)
            )
            assert top is not None
            assert bottom is not None
            clip = {
                "x": 0,
                "y": top["y"],
                "width": 900,
                "height": bottom["y"] - top["y"],
            }
            content = found.page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]  # a dict of its type
        assert len(content) < _MOST_BYTES
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / f"{name}.png").write_bytes(content)
