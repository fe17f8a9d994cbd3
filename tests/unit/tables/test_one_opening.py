"""A draft of a workbook starts one reader process, not one for each question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustering_protocols.terms.schema import Schema
from party_sdk.tables import ReadOptions, first_rows, table_opening
from party_sdk.tables.drafts import (
    draft_dictionary,
    draft_mapping,
    draft_options,
    find_id_column,
)

SCHEMA = Schema.model_validate({"fields": [{"name": "age"}, {"name": "crp"}]})
OPTIONS = ReadOptions(id_column="id")
DRAFTS: dict[str, Callable[[Path], Any]] = {
    "dictionary": lambda path: draft_dictionary(path, OPTIONS, lambda *_: True),
    "mapping": lambda path: draft_mapping(path, OPTIONS, SCHEMA),
    "options": lambda path: draft_options(path, ReadOptions()),
    "id column": lambda path: find_id_column(path, ReadOptions()),
    "first rows": lambda path: first_rows(path, OPTIONS),
}


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_draft_opens_its_table_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draft: str
) -> None:
    path = tmp_path / "rows.xlsx"
    ids = [f"p{i}" for i in range(8)]
    ages, values = [30 + i * 5 % 8 for i in range(8)], [i * 3 % 8 / 2 for i in range(8)]
    pd.DataFrame({"id": ids, "age": ages, "crp": values}).to_excel(path, index=False)
    questions, unpack_file = list[Any](), table_opening.unpack_file

    def count(question: Any, folder: Path) -> Any:
        questions.append(question)
        return unpack_file(question, folder)

    monkeypatch.setattr(table_opening, "unpack_file", count)
    assert DRAFTS[draft](path)
    assert len(questions) == 1


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_first_rows_show_all_columns_even_if_few_are_clustered(
    tmp_path: Path, ending: str
) -> None:
    table = pd.DataFrame({"id": ["a", "b"], "age": [1.5, 1.5], "crp": [2.5, 3.5]})
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        table.to_csv(path, index=False)
    elif ending == "xlsx":
        table.to_excel(path, index=False)
    else:
        table.to_parquet(path)
    found = first_rows(path, ReadOptions(id_column="id", columns=["crp"]))
    assert found == (["age", "crp"], [["1.5", "2.5"], ["1.5", "3.5"]])
