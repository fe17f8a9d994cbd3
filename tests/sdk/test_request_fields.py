"""What a coordinator asks for is written once: a field costs two files, a section five.

Both are added to a copy of the product, by the edits below and by no other. A program
then asks that copy for the option, the form, the terms, the sheet, the page, the letter,
a simulation and a repetition. What is counted is the files of the product that the edits
change or make; tests and pages of documentation are not counted.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.product import nodes

from clustering_protocols.terms import captions
from clustering_protocols.terms.request_fields import request_fields
from clustering_protocols.terms.terms import SessionRequest

ROOT = Path(__file__).parents[2]
ROOMS = (
    *("analyst_service", "clustering_protocols", "coterie"),
    *("coterie_pages", "party_sdk"),
)
CAPTIONS = "clustering_protocols/terms/captions.py"
TERMS = "clustering_protocols/terms/terms.py"
NEW = "archive"
"""The module of a section that only the copy has."""

FIELD = {
    CAPTIONS: {
        "RECRUITING: Final": 'ETHICS: Final = Caption(label="Ethics vote", group="words", '
        'flag="--ethics-vote", help="Which board voted.")\nRECRUITING: Final'
    },
    TERMS: {
        "    contact: Annotated": "    ethics_vote: Annotated[Text, ETHICS] = "
        'Field(default="", description="Which board voted.")\n    contact: Annotated',
        "    EVALUATION,\n": "    ETHICS,\n    EVALUATION,\n",
    },
}
ARCHIVE = '''
from typing import Annotated, Literal

from pydantic import Field

from clustering_protocols.common.values import Section
from clustering_protocols.terms.captions import ARCHIVE_PLACE, ARCHIVE_YEARS


class Archive(Section):
    """Where labels are kept afterwards."""

    place: Annotated[Literal["home", "board"], ARCHIVE_PLACE]
    years: Annotated[int, ARCHIVE_YEARS] = Field(default=10, ge=1)

    @property
    def sentence(self) -> str:
        """Return what becomes of labels."""
        return f"labels are kept at the {self.place} for {self.years} years"
'''
SECTION = {
    CAPTIONS: {
        "RELEASE: Final": 'ARCHIVE: Final = Caption(label="Kept", name="archive")\n'
        'ARCHIVE_PLACE: Final = Caption(label="Who keeps labels?", group="results", '
        'flag="--archive", help="Who keeps labels.", choices={"home": "each party", '
        '"board": "the board"}, lacking="say who keeps them, --archive.")\n'
        'ARCHIVE_YEARS: Final = Caption(label="Years of keeping", group="results", '
        'flag="--archive-years", help="How many years.", least=1)\nRELEASE: Final'
    },
    TERMS: {
        "    release: Annotated": "    archive: Annotated[Archive | None, "
        "ARCHIVE] = Field(default=None)\n    release: Annotated",
        "from clustering_protocols.terms.captions import (\n": "from "
        f"clustering_protocols.terms.{NEW} import Archive\n"
        "from clustering_protocols.terms.captions import (\n    ARCHIVE,\n",
    },
    f"clustering_protocols/terms/{NEW}.py": {"": ARCHIVE},
    "coterie_pages/models/sheet.py": {
        '    release: str = ""\n': '    release: str = ""\n    archive: str = ""\n'
    },
    "coterie/__init__.py": {
        '    "Release",\n': '    "Archive",\n    "Release",\n',
        '    "Release": ': f'    "Archive": "clustering_protocols.terms.{NEW}",\n'
        '    "Release": ',
    },
}
ASKED = """
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from click.testing import CliRunner

from clustering_protocols import session_terms, simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.canonical import canonical_json
from clustering_protocols.terms.terms import Layout, read_terms
from coterie_pages.pages import page
from coterie_pages.terminal_text import sheet_lines
from coterie_pages.views.terms_sheet import sheet_of
from party_sdk.cli.session.create import create
from party_sdk.coordinator.letters import letter
from party_sdk.coordinator.option_parsing import earlier_sections
from party_sdk.desk.coordinator.draft_fields import page_of
from party_sdk.desk.coordinator.drafts import Draft
from party_sdk.desk.responses import Form

KNOWN = SimpleNamespace(read=dict, names=dict)
LAYOUT = Layout.lattice(2)


def by_option(*words):
    "The terms that the command draws up."
    found = []

    class Opener(SimpleNamespace):
        def create_session(self, about, params, layout, *, session_id, seed, expected,
                           new_analyst, **sections):
            request = session_terms.build_request(
                params, layout, about=about, seed=1, **sections)
            found.append(read_terms(session_terms.draw_up("s", request)))
            raise SystemExit

    opener = Opener(acquaintances=KNOWN)
    arguments = ["Wards", "--protocol", "dummy", "--row-groups", "2", *words]
    CliRunner().invoke(create, arguments, obj=lambda: opener)
    return found[0]


def by_form(**said):
    "The terms that the form draws up, and the form as it is shown."
    fields = {"title": ["Wards"], "protocol": ["dummy"]}
    for name, place in (("name", "ab"), ("row", "12"), ("column", "11")):
        fields[f"slot.{name}"] = list(place)
    fields |= {"slot.title": ["", ""], "slot.expected": ["", ""]}
    draft = Draft(Form(fields | {n: [text] for n, text in said.items()}), Path())
    asked = draft.to_request(KNOWN)
    assert asked is not None, draft.wrong
    sections = {n: v for n, v in asked.sections.items() if n != "expected"}
    request = session_terms.build_request(
        asked.params, asked.layout, seed=1, **sections)
    shown = page_of(draft, KNOWN)
    names = {f.name: f.value for f in (*shown.about, *shown.runs, *shown.rest)}
    return read_terms(session_terms.draw_up("s", request)), names


def shown(terms):
    "What people read: on the sheet's page, in a terminal, in the letter."
    text = canonical_json(terms)
    sheet = sheet_of(text, terms, {})
    return page(sheet), "\\n".join(sheet_lines(sheet)), letter(terms, terms.layout.names[0])
"""
OF_FIELD = f"""{ASKED}
terms = by_option("--ethics-vote", "Board 7")
assert terms.about.ethics_vote == "Board 7"
drawn, names = by_form(ethics_vote="Board 7")
assert drawn.about == terms.about and names["ethics_vote"] == "Board 7"
html, text, letter = shown(terms)
assert "<dt>Ethics vote</dt><dd>Board 7</dd>" in html
assert "Board 7" in text and "Ethics vote: Board 7" in letter
assert earlier_sections(terms, dict())["about"].ethics_vote == "Board 7"
assert by_option().about.ethics_vote == ""
"""
OF_SECTION = f"""{ASKED}
import coterie

terms = by_option("--archive", "board", "--archive-years", "3")
assert terms.archive == coterie.Archive(place="board", years=3)
drawn, names = by_form(archive="board", archive_years="3")
assert drawn.archive == terms.archive
assert names["archive"] == "board" and names["archive_years"] == "3"
html, text, _ = shown(terms)
assert "<dt>Kept</dt><dd>Labels are kept at the board for 3 years.</dd>" in html
assert "Labels are kept at the board for 3 years." in text
assert earlier_sections(terms, dict())["archive"] == terms.archive
parts = simulation.split(np.arange(80.0).reshape(40, 2), LAYOUT, 1)
agreement = simulation.agree(Dummy(), LAYOUT, parts.data, 1, archive=terms.archive)
assert read_terms(read_agreement(agreement)[0].terms.encode()).archive == terms.archive
assert by_option().archive is None
"""


def edited(folder: Path, edits: Mapping[str, Mapping[str, str]]) -> Path:
    """Return a copy of the product with these edits."""
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, folder / room, ignore=ignored)
    for name, changes in edits.items():
        path = folder / name
        text = path.read_text() if path.exists() else ""
        for old, new in changes.items():
            assert text.count(old) == 1 or not old, (name, old)
            text = text.replace(old, new) if old else new
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("edits", "program", "most"),
    [(FIELD, OF_FIELD, 2), (SECTION, OF_SECTION, 6)],
    ids=["text", "section"],
)
def test_what_is_added_to_the_request_costs_few_files(
    tmp_path: Path, edits: dict[str, dict[str, str]], program: str, most: int
) -> None:
    assert len(edits) <= most
    copy = edited(tmp_path, edits)
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_one_class_lists_what_a_coordinator_asks_for() -> None:
    """Counted: classes with three or more fields that are sections of the request."""
    sections = SessionRequest.model_fields.keys() - {"layout", "protocol", "seed"}
    found = {
        node.name
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and len(sections & _fields(node)) >= 3
    }
    assert found == {"SessionRequest"}


def _fields(node: ast.ClassDef) -> set[str]:
    return {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def test_every_option_asks_for_one_field() -> None:
    asked = [each.caption.flag for each in request_fields() if each.caption.flag]
    offered = [
        each.flag
        for each in vars(captions).values()
        if isinstance(each, captions.Caption) and each.flag
    ]
    assert sorted(asked) == sorted(offered)
    assert len(set(asked)) == len(asked) > 8
