"""Values with two readings are asked about, and never read silently as one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.table_kinds import KINDS, as_sheet

from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions, Table, examine_table
from party_sdk.tables.drafts import draft_mapping
from party_sdk.tables.mapping import TableMapping
from party_sdk.tables.text_files import _LineIndex

COUNTS = [9370, 967, 776, 4709, 9079, 856, 8101, 6966, 463, 18_991] * 3
AGES = [20 + row * 17 % 61 for row in range(len(COUNTS))]
COLUMNS = ("age", "leuko")


def grouped(values: list[int], sign: str) -> list[str]:
    return [f"{value:,}".replace(",", sign) for value in values]


def write(path: Path, delimiter: str = ";", **columns: list[Any]) -> Path:
    pd.DataFrame(columns).to_csv(path, sep=delimiter, index=False)
    return path


def read(table: Any, mapping: Any = None, **how: Any) -> tuple[str, Table | None]:
    said = None if mapping is None else TableMapping.model_validate(mapping)
    report, found = examine_table(
        table, ReadOptions(mapping=said, **{"columns": COLUMNS, **how})
    )
    return "\n".join(report.problem_sentences), found


def values_of(table: Table | None, name: str) -> list[float]:
    assert table is not None
    X = table.take(np.arange(table.n_rows))
    return [float(value) for value in X[:, table.columns.index(name)]]


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
@pytest.mark.parametrize("sign", [".", ","])
@pytest.mark.parametrize("counts", [COUNTS, [c for c in COUNTS if c > 1000], [9370]])
@pytest.mark.quick(6)
def test_a_column_of_three_digits_is_refused_with_both_readings(
    tmp_path: Path, delimiter: str, sign: str, counts: list[int]
) -> None:
    cells = grouped(counts, sign)
    path = write(tmp_path / "a.csv", delimiter, age=AGES[: len(cells)], leuko=cells)
    said, table = read(path)
    assert table is None
    assert f'thousands = "{sign}"' in said
    assert f'decimal = "{sign}"' in said
    _, table = read(path, {"columns": {"leuko": {"thousands": sign}}})
    assert values_of(table, "leuko") == counts
    _, table = read(path, {"columns": {"leuko": {"decimal": sign}}})
    fractions = [float(cell.replace(",", ".")) for cell in cells]
    assert values_of(table, "leuko") == fractions


def test_lines_are_looked_for_once_for_all_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 200,000 rows of 60 columns, it took seconds instead of a fraction of one."""
    calls, row_bounds = list[int](), _LineIndex.row_bounds

    def count(index: _LineIndex, skip: int, *, one_column: bool) -> Any:
        calls.append(skip)
        return row_bounds(index, skip, one_column=one_column)

    monkeypatch.setattr(_LineIndex, "row_bounds", count)
    numbers = list[int]()
    for n in (1, 8):
        columns = {f"c{i}": grouped(COUNTS, ".") for i in range(n)}
        calls.clear()
        said, _ = read(write(tmp_path / "a.csv", **columns), columns=None)
        assert said.count("line 2, ") == n
        numbers.append(len(calls))
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("sentinel", ["9999", "-9999", "99999"])
def test_a_code_for_no_value_decides_nothing(tmp_path: Path, sentinel: str) -> None:
    cells = [sentinel, *grouped(COUNTS, ".")[1:]]
    said, table = read(write(tmp_path / "a.csv", age=AGES, leuko=cells))
    assert table is None
    assert "thousands" in said


@pytest.mark.parametrize("cell", ["0.370", "9.37", "9.3700", "12000", "1234.567"])
def test_one_cell_decides_for_its_column(tmp_path: Path, cell: str) -> None:
    cells = [*grouped(COUNTS, ".")[1:], cell]
    _, table = read(write(tmp_path / "a.csv", age=AGES, leuko=cells))
    assert values_of(table, "leuko") == [float(each) for each in cells]


def test_a_cell_far_below_decides_too(tmp_path: Path) -> None:
    cells = [*grouped(COUNTS, ".") * 2_000, "9.3"]
    ages = [*AGES * 2_000, 20]
    _, table = read(write(tmp_path / "a.csv", age=ages, leuko=cells))
    assert values_of(table, "leuko")[0] == 9.37
    integers = [str(row * 7 % 900) for row in range(60_000)]
    path = write(tmp_path / "b.csv", age=ages, leuko=[*integers, "9.370"])
    assert read(path)[1] is None


def test_other_columns_decide_for_one_that_a_program_may_have_written(
    tmp_path: Path,
) -> None:
    crp = [f"{row * 7 % 31 / 10:.1f}" for row in range(len(AGES))]
    fixed = [f"{row * 37 % 91 + 1.125:.3f}" for row in range(len(AGES))]
    path = write(tmp_path / "a.csv", age=AGES, leuko=fixed, crp=crp)
    report, table = examine_table(path, ReadOptions(columns=COLUMNS))
    assert values_of(table, "leuko") == [float(cell) for cell in fixed]
    assert any("'leuko': all fractions have three digits" in w for w in report.warnings)
    path = write(tmp_path / "b.csv", age=AGES, leuko=grouped(COUNTS, "."), crp=crp)
    assert read(path)[1] is None


def test_a_comma_in_another_column_makes_the_point_part_thousands(
    tmp_path: Path,
) -> None:
    weights = [f"{50 + row},{row % 10}" for row in range(len(AGES))]
    cells = grouped([count for count in COUNTS if count > 1000], ".")
    columns = {"age": AGES, "leuko": cells, "weight": weights}
    short = {name: own[: len(cells)] for name, own in columns.items()}
    path = write(tmp_path / "a.csv", **short)
    said, table = read(path)
    assert table is None
    assert 'thousands = "." or decimal = "."' in said


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_each_column_has_its_own_decimal_sign(tmp_path: Path, share: float) -> None:
    weights = [50 + row % 10 + row / 10 for row in range(1, len(AGES) + 1)]
    with_comma = round(share * len(AGES))
    cells = [
        f"{value:.1f}".replace(".", "," if row < with_comma else ".")
        for row, value in enumerate(weights)
    ]
    crp = [f"{row * 7 % 31 / 100 + 8:.2f}" for row in range(len(AGES))]
    path = write(tmp_path / "a.csv", ",", weight=cells, crp=crp)
    said, table = read(path, columns=("weight", "crp"))
    if share == 1:
        assert values_of(table, "weight") == [round(value, 1) for value in weights]
        assert values_of(table, "crp") == [float(cell) for cell in crp]
    else:
        assert table is None
        assert "weight" in said
        assert "decimal" in said


SCHEMA = Schema.model_validate({"fields": [{"name": "age"}, {"name": "leuko"}]})


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_any_table_are_judged_alike(tmp_path: Path, kind: str) -> None:
    frame = pd.DataFrame({"age": AGES, "leuko": grouped(COUNTS, ".")})
    table = KINDS[kind](frame, tmp_path)
    said, found = read(table, schema=SCHEMA)
    assert found is None
    assert 'thousands = "." or decimal = "."' in said
    mapping = {"columns": {"leuko": {"thousands": "."}}}
    _, found = read(table, mapping, schema=SCHEMA)
    assert values_of(found, "leuko") == COUNTS


def test_numbers_of_a_sheet_have_no_signs(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 2, 5], "leuko": [5.125, 7.375, 12.625]})
    _, table = read(as_sheet(frame, tmp_path))
    assert values_of(table, "leuko") == [5.125, 7.375, 12.625]
    frame = pd.DataFrame({"age": [1, 2, 5], "leuko": [5.125, 12_000, "9.370"]})
    said, table = read(as_sheet(frame, tmp_path))
    assert table is None
    assert "thousands" in said, "numbers beside texts are asked about"


def test_a_draft_asks_what_the_point_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", age=AGES, leuko=grouped(COUNTS, "."))
    drafted = draft_mapping(path, ReadOptions(), SCHEMA)
    [column] = [each for each in drafted.columns if each.name == "leuko"]
    assert column.is_open
    assert column.two_readings
    assert "leuko" not in drafted.to_mapping().columns


DATES = Schema.model_validate(
    {"fields": [{"name": "born", "type": "date"}, {"name": "seen", "type": "date"}]}
)
OPEN = ["03/04/2021", "05/06/2021", "12/11/2021"]
DAY_FIRST = ["31/01/2021", "05/06/2021", "12/11/2021"]
MONTH_FIRST = ["01/31/2021", "05/06/2021", "12/11/2021"]


def read_dates(table: Any, **how: Any) -> tuple[str, Table | None]:
    report, found = examine_table(table, ReadOptions(schema=DATES, **how))
    return "\n".join(report.problem_sentences), found


@pytest.mark.parametrize("kind", KINDS)
def test_days_and_months_that_nothing_tells_apart_are_asked_about(
    tmp_path: Path, kind: str
) -> None:
    frame = pd.DataFrame({"born": OPEN, "seen": ["2021-01-02"] * 3})
    said, found = read_dates(KINDS[kind](frame, tmp_path))
    assert found is None
    assert "day-first" in said


@pytest.mark.parametrize("days", [DAY_FIRST, MONTH_FIRST])
def test_a_column_shows_the_order_of_its_dates(tmp_path: Path, days: list[str]) -> None:
    path = write(tmp_path / "a.csv", born=days, seen=["2021-01-02"] * 3)
    _, table = read_dates(path)
    wanted = pd.to_datetime(days, dayfirst=days is DAY_FIRST, format="mixed")
    assert values_of(table, "born") == [day.toordinal() - 719_163 for day in wanted]


def test_columns_of_other_orders_are_read_each_by_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", born=DAY_FIRST, seen=MONTH_FIRST)
    _, table = read_dates(path)
    assert values_of(table, "born")[0] == values_of(table, "seen")[0] == 18658
    path = write(tmp_path / "b.csv", born=OPEN, seen=MONTH_FIRST)
    _, table = read_dates(path)
    assert table is not None
    days, others = [*DAY_FIRST, *MONTH_FIRST], [*OPEN, *OPEN]
    said, table = read_dates(write(tmp_path / "c.csv", born=others, seen=days))
    assert table is None
    assert "day-first" in said


SEX = {"name": "sex", "type": "string", "categories": ["f", "m"]}
CONSENT = {"name": "consent", "type": "boolean"}


def drafted_levels(
    folder: Path, field: Any, texts: list[str]
) -> dict[str, tuple[str | None, str]]:
    path = write(
        folder / "a.csv", pid=list(range(len(texts))), **{field["name"]: texts}
    )
    schema = Schema.model_validate({"fields": [field, {"name": "age"}]})
    column = draft_mapping(path, ReadOptions(), schema).columns[0]
    return {cell.text: (cell.level, cell.certainty.value) for cell in column.cells}


@pytest.mark.parametrize("texts", [["H", "M"], ["h", "m"], ["V", "M"], ["M", "m", "h"]])
def test_letters_with_another_reading_are_asked_about_together(
    tmp_path: Path, texts: list[str]
) -> None:
    levels = drafted_levels(tmp_path, SEX, texts * 4)
    assert levels == dict.fromkeys(texts, (None, "open"))


@pytest.mark.parametrize(
    ("field", "texts", "levels"),
    [
        *((SEX, texts, {"f", "m"}) for texts in ("FM", "WM")),
        *((CONSENT, texts, {"yes", "no", "N"}) for texts in ("JN", "SN", "ON")),
    ],
)
def test_letters_with_one_reading_are_drafted(
    tmp_path: Path, field: Any, texts: str, levels: set[str]
) -> None:
    drafted = drafted_levels(tmp_path, field, [*texts] * 4)
    assert {level for level, _ in drafted.values()} <= levels
    assert all(certainty != "open" for _, certainty in drafted.values())


def test_what_the_table_has_as_the_dictionary_does_is_not_asked(tmp_path: Path) -> None:
    levels = drafted_levels(tmp_path, SEX, ["f", "m"] * 4)
    assert {certainty for _, certainty in levels.values()} == {"certain"}


@pytest.mark.parametrize("form", ["\u2212{}", "{}-", "({})", "- {}", "{}\u2212"])
@pytest.mark.quick(3)
def test_other_minus_signs_are_read_where_the_mapping_says_so(
    tmp_path: Path, form: str
) -> None:
    values = [row * 7 % 90 / 2 * (-1) ** row for row in range(1, 30)]
    cells = [form.format(-v) if v < 0 else str(v) for v in values]
    path = write(tmp_path / "a.csv", age=AGES[: len(cells)], leuko=cells)
    said, table = read(path)
    assert table is None
    assert 'minus = "any"' in said
    assert "missing" not in said
    _, table = read(path, {"columns": {"leuko": {"minus": "any"}}})
    assert values_of(table, "leuko") == values
    drafted = draft_mapping(path, ReadOptions(), SCHEMA)
    assert drafted.to_mapping().columns["leuko"].minus == "any"
    assert not drafted.n_open
    large = [form.format("9.370"), "967", form.format("12.485")]
    path = write(tmp_path / "c.csv", age=AGES[:3], leuko=large)
    assert read(path, {"columns": {"leuko": {"minus": "any"}}})[1] is None
    mapping = {"columns": {"leuko": {"minus": "any", "thousands": "."}}}
    assert values_of(read(path, mapping)[1], "leuko") == [-9370, 967, -12_485]
    german = [cell.replace(".", ",") for cell in cells]
    path = write(tmp_path / "b.csv", age=AGES[: len(cells)], leuko=german)
    _, table = read(path, {"columns": {"leuko": {"minus": "any", "factor": 2}}})
    assert values_of(table, "leuko") == [2 * value for value in values]


def test_a_mapping_of_decimals_reads_no_thousands(tmp_path: Path) -> None:
    cells = [*["75,1", "8.69", "9.25"] * 10, "9.370"]
    path = write(tmp_path / "a.csv", age=[*AGES, 33], leuko=cells)
    said, table = read(path, {"columns": {"leuko": {"decimal": ","}}})
    assert table is None
    assert "'9.370' (1) is not a number" in said


def test_a_comma_beside_decimal_points_separates_thousands_only_if_a_cell_shows_it(
    tmp_path: Path,
) -> None:
    schema = Schema.model_validate({"fields": [{"name": "age"}, {"name": "leuko"}]})
    cells = [f"14,{n}" if n % 4 == 0 else f"{n / 10}" for n in range(131, 161)]
    for more, thousands in (([], None), (["1,234.5"] * 2, ",")):
        texts = [*cells[: 30 - len(more)], *more]
        path = write(tmp_path / "a.csv", age=AGES, leuko=texts)
        [_, column] = draft_mapping(path, ReadOptions(), schema).columns
        assert column.thousands == thousands
        assert column.is_open == (thousands is None)
        assert (column.two_readings == "") == (thousands is not None)
