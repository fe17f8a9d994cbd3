"""Links between pages lead to files, and to headings, that are there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    if not page.exists():
        pytest.skip("deleted, and not yet committed")
    for target, anchor in LINK.findall(CODE.sub("", page.read_text())):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{name} links to {target}#{anchor}"


def test_the_site_has_every_page_of_the_docs() -> None:
    names = re.findall(r"[\w/-]+\.(?:md|ipynb)", (ROOT / "mkdocs.yml").read_text())
    assert {name for name in names if not (ROOT / name).exists()} == {"api.md"}
    assert {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md")} <= {*names}
