"""Dask is chosen by settings: said to be missing, and never reached without TLS."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from analyst_service import settings as engine_settings
from analyst_service.blobs import BlobLocation
from analyst_service.engines import dask_engine, open_engine
from analyst_service.settings import Settings


def test_a_missing_dask_is_said_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_settings, "find_spec", lambda _: None)
    assert Settings().engine == "local"
    with pytest.raises(ValidationError, match=r"pip install 'coterie\[dask\]'"):
        Settings(engine="dask")


@pytest.mark.threat(138)
def test_a_scheduler_is_reached_by_tls_unless_it_is_local(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask_engine, "connect_to_cluster", lambda where, _: where)
    for setting, address in {
        "dask": "",
        "tls://dask.inside:8786": "tls://dask.inside:8786",
        "tcp+plain://127.0.0.1:8786": "tcp://127.0.0.1:8786",
    }.items():
        place = BlobLocation(folder=Path("blobs"))
        engine = open_engine(Settings(engine=setting).engine, place, {})
        assert isinstance(engine, dask_engine.DaskEngine)
        assert engine._connect() == address
    for refused in (
        *("tcp://127.0.0.1:8786", "tcp+plain://10.0.0.7:8786", "dask.inside:8786"),
        *("tcp+plain://127.0.0.1.example:8786", "tls://dask.inside", "inproc://1"),
        *("tls://user@dask.inside:8786", "ws://127.0.0.1:8786", ""),
    ):
        with pytest.raises(ValidationError, match=r"tcp\+plain://127.0.0.1:8786 works"):
            Settings(engine=refused)
