"""Fixtures for tests of the service."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result
from support.in_process import Api, in_process

from analyst_service.settings import Settings
from tests.service.samples import command


@pytest.fixture
def in_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every task and contribution be a blob, as long ones are."""
    for module in ("contribution_endpoints", "worker"):
        monkeypatch.setattr(f"analyst_service.{module}.ROW_BYTES", 0)


@pytest.fixture
def serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `coterie serve` end where it would begin to answer."""
    monkeypatch.setattr(
        "analyst_service.cli.shutdown.run_server", lambda *_, **__: None
    )
    monkeypatch.setattr("analyst_service.logs.configure_logging", lambda *_: None)
    monkeypatch.setattr(
        "analyst_service.cli.server._check_port_is_free", lambda *_: None
    )


@pytest.fixture(scope="module")
def file_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An analyst for a whole file, on SQLite; bodies may have 64 KiB."""
    with in_process(tmp_path_factory.mktemp("file"), max_body_bytes=1 << 16) as api:
        yield api


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Run a command of an administrator in an environment of its own."""
    place = Settings(data_dir=tmp_path / "data")
    return partial(command, place, COTERIE_DATABASE_URL="")
