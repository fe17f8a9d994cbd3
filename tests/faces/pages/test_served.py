"""What pages load: nothing that is not here, and nothing that was changed."""

import gzip
import re
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support import page_models

import coterie_pages
from analyst_service import openapi
from coterie_pages.models import Frame, Link, Refusal
from coterie_pages.pages import render_screen
from coterie_pages.served_pages import HEADERS, asset_url, find_asset

FOLDERS = [
    Path(package.__file__).parent / "static" for package in (coterie_pages, openapi)
]
VENDORED = [
    (folder, name, known)
    for folder in FOLDERS
    for name, known in tomllib.loads((folder / "vendored.toml").read_text()).items()
]
OURS = {"app.css", "api.js"}
LOADED = ("style.css", "app.css", "htmx.js")
FRAME = Frame(root="/ui", links=(Link(href="/ui", text="Home"),))
_MOST_BYTES = 100_000  # of a first page with all that it loads, compressed


@pytest.mark.parametrize(("folder", "name", "known"), VENDORED)
def test_what_is_not_ours_is_as_its_authors_wrote_it(
    folder: Path, name: str, known: dict[str, Any]
) -> None:
    for file, digest in known["files"].items():
        assert sha256((folder / file).read_bytes()).hexdigest() == digest
    assert (folder / f"{name}.LICENSE").is_file()
    script = next(file for file in known["files"] if file.endswith(".js"))
    assert known["version"] in (folder / script).read_text()


def test_whatever_lies_there_is_ours_or_is_named() -> None:
    there = {
        path.name
        for folder in FOLDERS
        for path in folder.iterdir()
        if path.suffix in {".js", ".css"}
    }
    named = {file for _, _, known in VENDORED for file in known["files"]}
    assert there == named | OURS


def loaded(html: str) -> set[str]:
    return set(re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', html))


def test_a_page_loads_what_there_is_and_by_what_it_holds() -> None:
    html = render_screen(
        Refusal(title="Not here", detail="There is no such page."), FRAME
    )
    assert loaded(html) == {asset_url("/ui", name) for name in LOADED}
    assert find_asset("../pages.py") is None


def test_a_first_page_is_light() -> None:
    html = render_screen(page_models.session_report(), FRAME)
    weight = len(gzip.compress(html.encode()))
    for name in LOADED:
        found = find_asset(name)
        weight += len(gzip.compress(found.content))
    assert weight < _MOST_BYTES


def test_the_policy_lets_nothing_in_and_nobody_frame_a_page() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    html = render_screen(page_models.run_report(), FRAME)
    # what the policy forbids is not even there
    assert "<style" not in html
    assert " style=" not in html
    assert not re.search(r"\son[a-z]+=", html)
    assert html.count("<script") == 1
