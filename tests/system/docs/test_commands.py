"""Every command that README and docs show does what they say."""

import textwrap
from pathlib import Path

import pytest
from sklearn.datasets import load_wine
from support.analyst_process import Analyst, free_port

from tests.unit.docs.pages import PAGES, PYTHON, ROOT, Reader, followed


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


def test_python_of_the_researchers_page_runs() -> None:
    page = ROOT / "docs" / "researcher.md"
    known = {"X": load_wine().data}
    for code in PYTHON.findall(page.read_text()):
        exec(textwrap.dedent(code), known)
    assert known["run"].fidelity > 0.9


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("```sh\nfalse\n```", True),
        ("```console\n$ echo a\nb\n```", True),
        ("```console\n$ echo a; echo b\n…b\n```", False),
        ("```sh\nx=a\n```\n```console\n$ echo $x\na\n```", False),
        (
            (
                "<!-- continues -->\n```console\nfirst$ until [ -e x ]; do sleep 0.1; done\n"
                "```\n```sh\ntouch x\n```"
            ),
            False,
        ),
    ],
)
def test_what_a_page_promises_is_compared(
    tmp_path: Path, text: str, *, fails: bool
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text + "\n")
    with Reader(tmp_path, {}, cold=True) as reader:
        if not fails:
            reader.follow(page)
            return
        with pytest.raises(AssertionError):
            reader.follow(page)
