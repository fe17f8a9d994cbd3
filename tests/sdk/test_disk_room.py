"""A full disk of a party's machine names that machine and the folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustering_protocols.common.errors import StorageFull
from party_sdk.home.files import append_private, overwrite_private, write_private
from party_sdk.results.output_files import write_whole
from party_sdk.tables.files import Limits
from party_sdk.tables.text_files import copy_decoded

Write = Callable[[Path], object]
WRITES: dict[str, Write] = {
    "home": lambda path: write_private(path, b"x"),
    "home, in place": lambda path: overwrite_private(path, b"x"),
    "ledger": lambda path: append_private(path, b"x", at=0, durable=True),
    "output": lambda path: write_whole(b"x", path),
    "copy": lambda path: copy_decoded(
        Path(__file__), "text", "utf-8", path, Limits("t")
    ),
}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_party_reads_that_its_own_machine_is_full_and_where(
    write: Write, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_there(inner: Callable[..., Any]) -> Callable[..., Any]:
        def open_(path: Any, *words: Any, **options: Any) -> Any:
            if Path(path).parent == tmp_path:
                raise OSError(code, os.strerror(code))
            return inner(path, *words, **options)

        return open_

    monkeypatch.setattr(os, "open", full_there(os.open))
    monkeypatch.setattr(Path, "open", full_there(Path.open))
    with pytest.raises(StorageFull) as raised:
        write(tmp_path / "file")
    error = raised.value
    assert "This machine" in error.detail
    assert str(tmp_path) in error.detail
    assert "administrator" not in str(error)
    assert "service" not in str(error)
