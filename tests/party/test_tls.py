"""To whom a client speaks: nobody whose certificate is not trusted gets a byte."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.tls import certificate

from clustering_protocols.common.errors import (
    CertificateRefused,
    InvalidParameters,
    KeyNotAuthentic,
)
from party_sdk.analyst_client.diagnosis import check_analyst
from party_sdk.analyst_client.http_analyst import connect
from tests.party.small_servers import SmallHandler, serving

KEY = '{"key": "' + "0" * 64 + '"}'


class _Answers(SmallHandler):
    """Answers everything, and notes what it was shown."""

    shown: list[str | None]

    def do_GET(self) -> None:  # noqa: N802  the server's own form
        self.shown.append(self.headers["Authorization"])
        self.answer(200, KEY, "application/json")


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str | None]]]:
    """Serve with the certificate in a folder; yield address and what was shown."""
    shown: list[str | None] = []
    handler = type("Handler", (_Answers,), {"shown": shown})
    with serving(handler, certificate=folder) as url:
        yield url, shown


def made(folder: Path, host: str = "127.0.0.1", days: int = 36_500) -> Path:
    folder.mkdir()
    certificate(folder, host, days)
    return folder / "tls.pem"


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    return lambda file: monkeypatch.setenv("COTERIE_CA_FILE", str(file))


def test_a_named_authority_of_the_institution_is_trusted(
    tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    own = made(tmp_path / "own")
    trust(own)
    with served(own.parent) as (url, shown), connect(url) as analyst:
        assert analyst.as_party("token").identity() == "0" * 64
    assert shown == ["Bearer token"]


@pytest.mark.parametrize(
    ("shows", "trusts", "why"),
    [
        ("own", "", "COTERIE_CA_FILE"),
        ("own", "other", "COTERIE_CA_FILE"),
        ("elsewhere", "elsewhere", "is for another name.*COTERIE_CA_FILE"),
    ],
    ids=["no authority", "another authority", "another host"],
)
def test_an_untrusted_server_gets_no_token_and_no_retry(
    tmp_path: Path, trust: Callable[[Path], None], shows: str, trusts: str, why: str
) -> None:
    made(tmp_path / shows, "127.0.0.1" if shows == "own" else "10.9.8.7")
    if trusts == "other":
        made(tmp_path / trusts)
    if trusts:
        trust(tmp_path / trusts / "tls.pem")
    with (
        served(tmp_path / shows) as (url, shown),
        connect(url, patience=60) as analyst,
        pytest.raises(KeyNotAuthentic, match=why),
    ):
        analyst.as_party("token").identity()
    assert shown == []


@pytest.mark.parametrize("trusts_it", [True, False])
def test_an_expired_certificate_is_reported_with_its_day(
    tmp_path: Path, trust: Callable[[Path], None], *, trusts_it: bool
) -> None:
    ended = made(tmp_path / "ended", days=366)
    if trusts_it:
        trust(ended)
    with served(ended.parent) as (url, shown):
        with (
            connect(url) as analyst,
            pytest.raises(CertificateRefused) as refused,
        ):
            analyst.as_party("token").identity()
        trust(ended)
        [found] = [each for each in check_analyst(url) if not each.is_ok]
    if trusts_it:
        assert "expired on 2021-01-01 00:00 UTC" in refused.value.detail
        assert "administrator" in refused.value.remedy
        assert (found.text, found.remedy) == (
            refused.value.detail,
            refused.value.remedy,
        )
        assert "COTERIE_CA_FILE" not in str(refused.value)
    else:
        assert "COTERIE_CA_FILE" in refused.value.remedy
    assert "signature" not in str(refused.value)
    assert shown == []


def test_a_file_that_holds_no_certificate_is_named(
    tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    trust(tmp_path / "ca.pem")
    with pytest.raises(InvalidParameters, match=r"ca\.pem contains no certificate"):
        connect("https://127.0.0.1:1")
