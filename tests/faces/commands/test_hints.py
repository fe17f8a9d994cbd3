"""Names that are nearly right, and places that are counted from 1."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from support.analyst_process import Analyst
from support.terminal import Terminal, accepting, opened

from clustering_protocols.catalogue import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.values import describe_finding, suggest_similar_name
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.home.addresses import address_advice


def test_a_near_name_is_offered_and_a_far_one_is_not() -> None:
    assert suggest_similar_name("Nroth", ["north", "south"]) == " Did you mean 'north'?"
    assert suggest_similar_name("elsewhere", ["north", "south"]) == ""


def test_a_slot_and_a_session_that_are_misspelled(online: Terminal) -> None:
    session, invitation = opened(online)
    online("party", "run", invitation, *accepting(online, invitation))
    leave = online("party", "leave", session, "r1c2", expect=7)
    assert "Did you mean 'r1c1'?" in leave.stderr
    leave = online("party", "leave", session[:-1], "r1c1", expect=7)
    assert f"Did you mean {session!r}?" in leave.stderr


def test_an_analyst_that_is_away_is_told_with_the_time(
    online: Terminal, rows: Path
) -> None:
    _, invitation = opened(online)
    address, mark, secrets = invitation.partition("#")
    away = f"{address.rpartition(':')[0]}:9{mark}{secrets}"
    data = ("--data", rows, "--id-column", "id", "--patience", "0.5")
    said = online("party", "run", away, *data, expect=6).stderr
    assert said.count("cannot be reached; trying again since") == 1


def test_no_words_of_the_validator_reach_a_person() -> None:
    """Of every rule that our models use, and that a person may break."""
    for protocol in catalogue().values():
        with pytest.raises(ValidationError) as raised:
            protocol.params.model_validate(
                dict.fromkeys([*protocol.params.model_fields, "another"], object())
            )
        for finding in raised.value.errors(include_url=False):
            said = describe_finding(finding)
            for word in ("Input", "Value error", "should be", "permitted"):
                assert word not in said, (finding["type"], said)


def test_slots_count_from_one(online: Terminal) -> None:
    create = ("session", "create", "t", "--param", "n_clusters=2", "--party")
    refused = online(*create, "a=0,1", expect=5)
    assert "counted from 1, but 'a=0,1' has 0" in refused.stderr
    assert "use a-z, 0-9" in online(*create, "Nörd=1,1", expect=5).stderr


def test_a_broken_invitation_is_called_one(online: Terminal) -> None:
    _, invitation = opened(online)
    refused = online("party", "run", invitation[:-7], expect=5)
    assert "This cannot be used as an invitation" in refused.stderr
    assert "coterie protocols" not in refused.stderr


def test_https_to_a_port_without_tls_is_told_at_once(analyst: Analyst) -> None:
    secure = analyst.url.replace("http:", "https:")
    with (
        connect(secure, patience=300) as secured,
        pytest.raises(InvalidParameters, match="does not speak TLS"),
    ):
        secured._transport.send("GET", "/healthz", headers={})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("analyst.example", "analyst.example: write https://analyst.example."),
        ("analyst.example:8443/a", "write https://analyst.example:8443/a."),
        ("localhost:8443", "write https://localhost:8443."),
        ("127.0.0.1", "write https://127.0.0.1."),
        ("[::1]:8443", "write https://[::1]:8443."),
        ("ftp://analyst.example", "write https://analyst.example."),
        ("https:analyst.example", "is not an address"),
        ("https://", "is not an address"),
        ("https://[", "is not an address"),
        ("my analyst", "is not an address"),
        ("https://analyst.example#coterie-1/x", "before its '#'"),
        ("https://analyst.example@127.0.0.1:1", "what follows the '@'"),
        ("https://user:word@analyst.example", "what follows the '@'"),
        ("https://analyst.example?x=1", "a query"),
        ("https://analyst.example#x", "a part after '#'"),
        ("https://analyst.example\\.evil.example", "a backslash"),
        ("https://%61nalyst.example", "a '%'"),
        ("https://\u0430nalyst.example", "'xn--nalyst-2nf.example'"),
        ("HTTPS://analyst.example", ""),
        ("http://127.0.0.1:8443", ""),
    ],
)
def test_what_is_no_address_is_told_what_to_write(written: str, said: str) -> None:
    found = address_advice(written)
    assert said in found
    assert bool(said) == bool(found)


def test_an_address_without_a_scheme_is_said_at_its_option(terminal: Terminal) -> None:
    key = ("--key", "ck_1")
    said = "--url analyst.example: write https://analyst.example."
    wrong = terminal(
        "session", "--url", "analyst.example", *key, "list", expect=2
    ).stderr
    assert said in wrong
    assert "parameter" not in wrong
    terminal.environment["COTERIE_URL"] = "analyst.example"
    wrong = terminal("session", *key, "list", expect=2).stderr
    assert "COTERIE_URL analyst.example: write https://" in wrong
    wrong = terminal("doctor", "analyst.example", expect=2).stderr
    assert "write https://analyst.example." in wrong


def test_a_key_that_is_not_there_is_looked_for_among_keys(terminal: Terminal) -> None:
    terminal.environment |= {
        "COTERIE_DATA_DIR": str(terminal.folder / "analyst"),
        "COTERIE_DATABASE_URL": "",
    }
    terminal("migrate")
    for words in (("key", "revoke", "nobody"), ("key", "rotate", "nobody")):
        said = terminal(*words, expect=7).stderr
        assert "coterie key list" in said
        assert "party list" not in said
