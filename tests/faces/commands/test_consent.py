"""What a party's people read and accept before they join."""

import json
import shlex
from pathlib import Path

import pytest
from support.terminal import (
    ALONE,
    RISK,
    Terminal,
    accepting,
    answer_all,
    opened,
    running,
)

from clustering_protocols.terms.session_risks import BY_DESIGN
from party_sdk.home.policy_files import policy_file
from party_sdk.party.party_index import slots_of
from party_sdk.party.party_session import PartySession


def invited(online: Terminal) -> tuple[str, str]:
    session, invitation = opened(online)
    return session, f"@{online.file('invitation', invitation)}"


def printed_command(shown: str) -> list[str]:
    _, _, printed = shown.partition("accepts it with:\n")
    first, second = printed.splitlines()[:2]
    name, *words = shlex.split(f"{first.removesuffix(chr(92))} {second}")
    assert name == "coterie"
    return words


def test_the_first_run_shows_the_sheet_before_it_refuses(online: Terminal) -> None:
    session, invitation = invited(online)
    refused = online("party", "run", invitation, expect=3).stderr
    assert "Who reads what" in refused
    for code in (RISK, "house.open-slot"):
        assert refused.count(f"({code})") == 1
    assert slots_of(online.folder / "home", session) == []


def test_the_printed_command_accepts_exactly_this_sheet(
    online: Terminal, rows: Path
) -> None:
    session, invitation = invited(online)
    sheet = online.json("party", "terms", invitation)["consent"]
    refused = online("party", "run", invitation, expect=3)
    accepting = printed_command(refused.stderr)
    assert accepting[-2:] == ["--accept", sheet]
    assert (
        f"SHA-256 of this sheet: {sheet}" in online("party", "terms", invitation).stdout
    )
    for other in ("", "0" * 64, sheet[:8]):
        wrong = online("party", "run", invitation, "--accept", other, expect=3)
        assert "The accepted sheet does not" in wrong.stderr
    _, another = opened(online)
    wrong = online("party", "run", another, "--accept", sheet, expect=3)
    assert "The accepted sheet does not" in wrong.stderr
    joined = online(*accepting)
    assert PartySession(online.folder / "home", session, "r1c1").consent
    _, _, following = joined.stderr.partition("Next: coterie ")
    told = following.replace("FILE", str(rows))
    assert "12 labels" in online(*shlex.split(told)).stdout


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_asks_one_question_after_the_sheet(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch, *, answer: bool
) -> None:
    _, invitation = opened(online)
    run = ("party", "run", invitation, "--data", rows, *ALONE)
    with answer_all(monkeypatch, yes=answer) as asked:
        online(*run, expect=0 if answer else 3)
    assert asked == ["Do you accept this sheet, and that what it lists is sent?"]


def test_the_risk_of_every_session_is_accepted_with_the_first_sheet(
    online: Terminal,
) -> None:
    create = ("session", "create", "Wards", "--protocol", "omnifc", "--clusters", 2)
    parties = ("--party", "north", "--party", "south", "--party", "west")
    first, second = (
        next(iter(online.json(*create, *parties)["invitations"].values())) for _ in "12"
    )
    risks = {risk["code"] for risk in online.json("party", "terms", first)["risks"]}
    others = json.dumps(sorted(risks - {BY_DESIGN}))
    policy_file(online.folder / "home").write_text(f"accepted_risks = {others}\n")
    assert BY_DESIGN in online("party", "run", second, expect=3).stderr
    online("party", "run", first, *accepting(online, first))
    online("party", "run", second)


def test_terms_are_not_read_from_an_analyst_that_is_not_listed(
    online: Terminal, rows: Path
) -> None:
    _, invitation = invited(online)
    policy_file(online.folder / "home").write_text('analysts = ["https://a.example"]')
    for words in (("terms", invitation), ("check", invitation, "--data", rows)):
        assert "'analysts'" in online("party", *words, expect=3).stderr


def test_a_table_is_read_before_anything_is_asked(
    online: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, invitation = opened(online)
    path = online.file("broken.csv", "id,x,y\np1,1,\n")
    with answer_all(monkeypatch, yes=True) as asked:
        refused = online("party", "run", invitation, "--data", path, expect=5)
    assert "line 2, y: empty" in refused.stderr
    assert asked == []


def test_nobody_is_asked_for_risks_of_terms_that_a_guard_refuses(
    online: Terminal,
) -> None:
    _, invitation = opened(online)
    refused = online(
        "party", "run", invitation, "--guard", 'protocols=["dc"]', expect=3
    )
    assert "'protocols'" in refused.stderr
    assert "accepts it with" not in refused.stderr


def test_an_invitation_that_was_typed_is_not_printed_again(online: Terminal) -> None:
    _, invitation = opened(online)
    refused = online("party", "run", invitation, expect=3)
    assert invitation not in refused.stderr
    assert "coterie party run INVITATION" in refused.stderr


def test_who_stops_a_run_is_told_that_the_same_command_goes_on(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    _, invitation = opened(online)
    run = running(online, invitation, rows)
    with monkeypatch.context() as patch:
        patch.setattr("party_sdk.party.participant.Party.run", interrupted)
        assert "same command continues" in online(*run, expect=130).stderr
    assert "12 labels" in online(*run).stdout
