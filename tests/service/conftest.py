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
    """Store every task and contribution as a blob, also the short ones."""
    for module in ("contribution_endpoints", "worker"):
        monkeypatch.setattr(f"analyst_service.{module}.ROW_BYTES", 0)


@pytest.fixture
def serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `coterie serve` return instead of running a server."""
    monkeypatch.setattr(
        "analyst_service.cli.shutdown.run_server", lambda *_, **__: None
    )
    monkeypatch.setattr("analyst_service.logs.configure_logging", lambda *_: None)
    monkeypatch.setattr(
        "analyst_service.cli.server._check_port_is_free", lambda *_: None
    )


@pytest.fixture(scope="module")
def file_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An analyst on SQLite for all tests of a file; bodies have at most 64 KiB."""
    with in_process(tmp_path_factory.mktemp("file"), max_body_bytes=1 << 16) as api:
        yield api


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Run an administrator's command with a data folder of its own."""
    place = Settings(data_dir=tmp_path / "data")
    return partial(command, place, COTERIE_DATABASE_URL="")
