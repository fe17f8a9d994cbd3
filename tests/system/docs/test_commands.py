"""Every command that README and docs show does what they say."""

from pathlib import Path

import pytest
from support.analyst_process import Analyst, free_port

from tests.unit.docs.pages import PAGES, ROOT, Reader, followed


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if followed(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_can_be_followed(page: Path, tmp_path: Path, analyst: Analyst) -> None:
    said = {
        "https://analyst.example": analyst.url,
        "ck_…": analyst.key,
        "8443": str(free_port()),
    }
    cold = page == ROOT / "README.md"  # one page as a reader's machine would run it
    with Reader(tmp_path, said, cold=cold) as reader:
        reader.follow(page)


@pytest.mark.parametrize(
    "text", ["```sh\nfalse\n```", "```console\n$ echo a\nb\n```"], ids=["code", "text"]
)
def test_what_a_page_promises_is_compared(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text + "\n")
    with (
        Reader(tmp_path, {}, cold=True) as reader,
        pytest.raises(AssertionError),
    ):
        reader.follow(page)
