"""A mapping is a file from anywhere: what is wrong with it is said, and nothing else."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import Schema
from party_sdk.tables import LongForm, ReadOptions, examine_table, open_long_form
from party_sdk.tables.mapping import (
    MOST_BYTES,
    TableMapping,
    dump_mapping,
    parse_mapping,
    read_mapping,
)

FIRST = "version = 1\n"
SECRET = "geheim"
MANY = "\n".join(f'"k{i}" = "female"' for i in range(20_000))
REFUSED = {
    "nothing": ("", "version = 1"),
    "no version": ("[columns.a]\nfrom = 'b'", "version = 1"),
    "newer": ("version = 2", "version 2"),
    "a truth": ("version = true", "version"),
    "no TOML": (f"{FIRST}[columns", "not TOML"),
    "no text": (b"\xff\xfe\x00", "UTF-8"),
    "brackets": (f"{FIRST}a = {'[' * 100_000}", "TOML"),
    "a huge number": (f"{FIRST}a = {'9' * 10_000}", "TOML"),
    "huge": (FIRST + "#" * MOST_BYTES, "4 MiB"),
    "nan": (f"{FIRST}[columns.a]\nfactor = nan", "factor"),
    "inf": (f"{FIRST}[columns.a]\nfactor = inf", "factor"),
    "offset": (f"{FIRST}[columns.a]\noffset = -inf", "offset"),
    "zero": (f"{FIRST}[columns.a]\nfactor = 0", "factor of 0"),
    "minus zero": (f"{FIRST}[columns.a]\nfactor = -0.0", "factor of 0"),
    "tiny": (f"{FIRST}[columns.a]\nfactor = 1e-300", "factor of 0"),
    "large": (f"{FIRST}[columns.a]\nfactor = 1e300", "factor"),
    "a text": (f"{FIRST}[columns.a]\nfactor = 'ten'", "factor"),
    "unit twice": (
        f"{FIRST}[columns.a]\nfactor = 2\nconvert = 'HbA1c, % to mmol/mol'",
        "but not both",
    ),
    "no unit": (f"{FIRST}[columns.a]\nconvert = 'HbA1c, % to mmol'", "no conversion"),
    "levels": (f"{FIRST}[columns.a.levels]\n{MANY}", "levels: give at most"),
    "a date": (f"{FIRST}[columns.a]\nlevels = {{{SECRET} = 2020-01-01}}", "levels"),
    "nested": (f"{FIRST}[columns.a.levels.{SECRET}]\nb = 1", "levels"),
    "inf level": (f"{FIRST}[columns.a]\nlevels = {{{SECRET} = inf}}", "levels"),
    "a code": (
        f"{FIRST}[columns.a]\nmissing = ['{SECRET}']\nlevels = {{{SECRET} = 'x'}}",
        "and a level",
    ),
    "blanks": (f"{FIRST}[columns.a.levels]\n'x' = 1\n' x' = 2", "blanks"),
    "one source": (
        f"{FIRST}[columns.a]\nfrom = 'x'\n[columns.b]\nfrom = 'x'",
        "come from the same",
    ),
    "its own source": (
        f"{FIRST}[columns.a]\nfrom = 'b'\n[columns.b]\nmissing = ['9']",
        "come from the same",
    ),
    "controls": (f'{FIRST}[columns.a]\nfrom = "b\\u001b[31m"', "one line"),
    "a long name": (f"{FIRST}[columns.a]\nfrom = '{'x' * 300}'", "at most 200"),
    "empty": (f"{FIRST}[columns.a]\nfrom = ' '", "at least 1"),
    "unknown": (f"{FIRST}[columns.a]\nform = 'b'", "'from'"),
    "file": (f"{FIRST}[file]\npath = '/etc/passwd'", "file"),
    "encoding": (f"{FIRST}[file]\nencoding = '../../x'", "encoding"),
    "dialect": (f"{FIRST}[file]\nskip = -1", "skip"),
    "line 0": (f"{FIRST}[leave_out]\nlines = [0]", "lines"),
    "line 1.5": (f"{FIRST}[leave_out]\nlines = [1.5]", "lines"),
    "no cells": (f"{FIRST}[leave_out.values]\na = []", "values"),
    "many lines": (f"{FIRST}[leave_out]\nlines = {[*range(1, 2000)]}", "lines"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mapping_that_cannot_be_is_refused_in_a_sentence(name: str) -> None:
    content, part = REFUSED[name]
    text = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(InvalidData) as refused:
        parse_mapping(text, "mapping.toml")
    said = refused.value.detail
    assert part in said
    assert SECRET not in said, "a cell is shown where nobody asked"
    assert len(said) < 400
    assert "\x1b" not in said


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_end_in_a_traceback(content: bytes) -> None:
    with suppress(InvalidData):
        parse_mapping(FIRST.encode() + content, "mapping.toml")


names = st.text(
    st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20
).filter(lambda text: text.strip() == text)
levels = st.dictionaries(names, names | st.integers() | st.booleans(), max_size=3)


@given(
    st.dictionaries(
        names,
        st.fixed_dictionaries(
            {"from": names, "levels": levels},
            optional={"factor": st.floats(1e-6, 1e6), "offset": st.floats(-9, 9)},
        ),
        max_size=4,
    )
)
def test_what_is_written_is_read_again(columns: dict[str, object]) -> None:
    try:
        mapping = TableMapping.model_validate({"columns": columns})
    except ValueError:
        return
    assert parse_mapping(dump_mapping(mapping), "again") == mapping


SCHEMA = Schema.model_validate(
    {
        "fields": [
            {"name": "a"},
            {"name": "sex", "type": "string", "categories": ["female", "male"]},
        ]
    }
)


def problems_of(path: Path, **said: object) -> list[str]:
    how = ReadOptions(schema=SCHEMA, mapping=TableMapping.model_validate(said))
    report, table = examine_table(path, how)
    assert table is None
    return [each.to_sentence(report.counts) for each in report.problems]


def test_what_fits_no_table_is_said_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,Geschlecht\n1,w\n2,m\n3,w\n")
    absent = {"sex": {"from": "Geschlect"}}
    assert "Did you mean 'Geschlecht'?" in problems_of(path, columns=absent)[0]
    sex = {"sex": {"from": "Geschlecht", "levels": {"w": "female", "m": "male"}}}
    out = {"values": {"Geschlecht": ["w", "m"]}}
    assert problems_of(path, columns=sex, leave_out=out)[0] == (
        "the mapping leaves out all rows"
    )
    beyond = problems_of(path, columns=sex, leave_out={"lines": [99, 1, 3]})
    assert beyond == [
        "line 1: the mapping leaves out this line, and no row begins here",
        "line 99: the mapping leaves out this line, and no row begins here",
    ]
    other = {"sex": {"from": "Geschlecht", "levels": {"w": "weiblich"}}}
    assert problems_of(path, columns=other)[0].startswith("line 2, sex:")


BROKEN = ['b"x;2', 'b;"2', "b", "b;2;3", '"b\nc";2;3', '"b\nc"x;2', '""";2']


@pytest.mark.parametrize("line", BROKEN)
@pytest.mark.parametrize("omitted", [(3,), (4,), (3, 4), (3, 6)])
@pytest.mark.quick(8)
def test_lines_that_are_no_rows_shift_no_others(
    tmp_path: Path, line: str, omitted: tuple[int, ...]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"n;a\na;1\n{line}\nd;4\ne;5\nf;x\ng;7\nh;9\n")
    said = {"leave_out": {"lines": omitted}, "columns": {"id": {"from": "n"}}}
    how = ReadOptions(
        id_column="id",
        schema=Schema.model_validate({"fields": [{"name": "a"}]}),
        mapping=TableMapping.model_validate(said),
    )
    report, table = examine_table(path, how)
    if table is None:
        assert report.problems
        return
    kept = path.read_text().splitlines()
    for number, name in zip(
        table.locations.numbers_of_rows(range(table.n_rows)),
        table.ids or (),
        strict=True,
    ):
        assert kept[number - 1].startswith((name, f'"{name[0]}')), (number, name)
        assert number not in omitted


def test_quotation_marks_inside_cells_leave_out_no_other_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('n;a\na;1\nb"x;2\nc;3\nd"x;4\ne;5\nf;6\ng;9\n')
    schema = Schema.model_validate({"fields": [{"name": "a"}]})
    mapping = TableMapping.model_validate({"leave_out": {"lines": [7]}})
    how = ReadOptions(id_column="n", schema=schema, mapping=mapping)
    report, table = examine_table(path, how)
    assert table is None
    assert "quotation marks" in report.problems[0].what


def test_swapped_names_are_no_circle(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y,z\n1,2,3\n1,3,4\n2,5,3\n")
    said = {"columns": {"x": {"from": "y"}, "y": {"from": "x"}}}
    how = ReadOptions(mapping=TableMapping.model_validate(said))
    report, _ = examine_table(path, how)
    shown = {each.name: (each.least, each.largest) for each in report.columns}
    assert shown == {"x": (2, 5), "y": (1, 2), "z": (3, 4)}
    hidden = {"columns": {"x": {"from": "y"}}}
    report, _ = examine_table(
        path, ReadOptions(mapping=TableMapping.model_validate(hidden))
    )
    assert [each.name for each in report.columns] == ["x", "z"]
    assert any("not read" in warning for warning in report.warnings)


def test_ids_keep_their_cells() -> None:
    frame = pd.DataFrame({"nr": [1, 2, 3], "a": [4.0, 4.5, 9.0]})
    renamed = TableMapping.model_validate({"columns": {"id": {"from": "nr"}}})
    report, table = examine_table(frame, ReadOptions(id_column="id", mapping=renamed))
    assert table is not None, report
    assert list(table.ids or ()) == ["1", "2", "3"]
    moved = {"columns": {"id": {"from": "nr", "factor": 2.0}}}
    mapping = TableMapping.model_validate(moved)
    report, table = examine_table(frame, ReadOptions(id_column="id", mapping=mapping))
    assert table is None
    assert "changes the ids" in report.problems[0].what


def test_a_mapping_of_a_long_form_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("patient,item,n\na,x,1\nb,y,drei\n")
    said = {"columns": {"count": {"from": "n", "factor": 2.0}}}
    mapping = TableMapping.model_validate(said)
    form = LongForm("patient", "item", "count")
    with pytest.raises(InvalidData):
        open_long_form(path, form, options=ReadOptions(mapping=mapping))
    path.write_text("patient,item,n\na,x,1\nb,y,3\n")
    found = open_long_form(path, form, options=ReadOptions(mapping=mapping))
    assert found.sparse.toarray().tolist() == [[2.0, 0.0], [0.0, 6.0]]


def test_a_file_of_a_mapping_is_read_whatever_it_is(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.toml", Path("/dev/null/x"), Path("a\0b")):
        with pytest.raises(InvalidData):
            read_mapping(path)
    endless = tmp_path / "endless.toml"
    endless.symlink_to("/dev/zero")
    with pytest.raises(InvalidData, match="4 MiB"):
        read_mapping(endless)


def test_a_mapping_opens_no_file_beside_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    path = tmp_path / "rows.csv"
    path.write_text(f"{other},b\n1,w\n2,m\n3,w\n")
    touched: list[str] = []
    for place, name in ((os, "stat"), (os, "open"), (io, "open")):
        monkeypatch.setattr(place, name, _note(getattr(place, name), touched))
    said = {
        "file": {"sheet": str(other)},
        "columns": {
            "a": {"from": str(other), "levels": {"../x": 1, "file:///etc": 2}},
            "../../b": {"from": "b", "levels": {"w": str(other), "m": "/etc/passwd"}},
        },
    }
    report, _ = examine_table(
        path, ReadOptions(mapping=TableMapping.model_validate(said))
    )
    assert [each.name for each in report.columns] == ["a", "../../b"]
    assert str(path) in touched, "nothing was watched"
    assert str(other) not in touched


def _note(called: object, touched: list[str]) -> object:
    def noted(path: object, *words: object, **named: object) -> object:
        touched.append(str(path))
        return called(path, *words, **named)  # type: ignore[operator]

    return noted
