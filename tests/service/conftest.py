"""Fixtures for tests of the service."""

from __future__ import annotations

import pytest


@pytest.fixture
def in_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every contribution be a blob, as long ones are."""
    monkeypatch.setattr("analyst_service.contributions.endpoints.ROW_BYTES", 0)


@pytest.fixture
def serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `coterie serve` end where it would begin to answer."""
    monkeypatch.setattr("analyst_service.cli.shutdown.run", lambda *_, **__: None)
    monkeypatch.setattr("analyst_service.monitoring.logs.write_logs", lambda *_: None)
    monkeypatch.setattr("analyst_service.cli.server._check_port", lambda *_: None)
