"""A coordinator hands over invitations as files, waits longer, and asks again."""

import re
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner
from support.analyst_process import House
from support.in_process import Api, in_process

from clustering_protocols import simulation
from clustering_protocols.common.errors import InvalidParameters, SessionOver
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import About, Guards, Layout
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.cli.session.commands import invite
from party_sdk.cli.session.create import create
from party_sdk.coordinator.letters import (
    compose_letter,
    prepare_letter_folder,
    write_letters,
)

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PARTS.layout.names


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with in_process(tmp_path / "analyst") as api:
        yield House(api, tmp_path)


def opened(house: House, name: str, **more: Any) -> Any:
    dictionary = [numeric_schema(("a", "b"), -1, 1), numeric_schema(("c", "d"), -1, 1)]
    return house.open(
        name,
        DataCollaboration(n_clusters=3, dimensions="all_but_one"),
        Layout.lattice(3, 2),
        dictionary=dictionary,
        guards=Guards(minimum_rows=7),
        release=Release(profiles="members"),
        **more,
    )


def repeated(house: House, *words: str, code: int = 0) -> Any:
    """The terms of a session that a command opened like `spring`, or what it said."""
    words = ("--from", "spring", "--id", "summer", "--json", *words)
    done = CliRunner().invoke(create, words, obj=lambda: house.coordinator)
    if code:
        assert done.exception is not None
        return str(done.exception) + done.output
    assert done.exit_code == 0, (done.output, done.exception)
    return house.coordinator.session("summer").terms


def test_a_session_is_repeated_with_all_that_its_terms_say(house: House) -> None:
    first = opened(house, "spring")
    again = repeated(house)  # a command has no entropy of the house
    kept = {"session", "seed", "identities"}
    assert again.model_dump(exclude=kept) == first.terms.model_dump(exclude=kept)
    assert again.seed != first.terms.seed


def test_what_an_option_says_differs_from_the_earlier_session(house: House) -> None:
    first = opened(house, "spring")
    terms = repeated(
        house,
        *("Summer", "--param", "n_clusters=2..5", "--minimum-rows", "9"),
        *("--party", "r2c1=1,1", "--party", "r2c2=1,2"),
        *("--party", "east=2,1,East", "--party", "east2=2,2"),
    )
    assert terms.about.title == "Summer"
    assert terms.evaluation.n_clusters == (2, 3, 4, 5)
    assert terms.guards.minimum_rows == 9
    assert terms.layout.names == ("r2c1", "r2c2", "east", "east2")
    assert (terms.dictionary, terms.release) == (
        first.terms.dictionary,
        first.terms.release,
    )


def test_another_rule_for_missing_values_leaves_site_effects_out_as_before(
    house: House,
) -> None:
    house.open(
        "spring",
        LosslessFederated(n_clusters=3),
        Layout.lattice(3),
        dictionary=[numeric_schema(("a", "b", "c"), -1, 1)],
        preparation=[Preparation(harmonise="combat", covariates=("b",))],
    )
    [plan] = repeated(house, "--missing", "mean").preparation
    assert (plan.harmonise, plan.covariates) == ("combat", ("b",))
    assert {treatment.missing for treatment in plan.fields} == {"mean"}


def test_fewer_columns_need_a_dictionary_of_their_own(house: House) -> None:
    opened(house, "spring")
    assert "dictionar" in repeated(
        house, "--party", "a", "--party", "b", "--party", "c", code=1
    )


def test_another_method_takes_the_parameters_that_it_has_too(house: House) -> None:
    house.open(
        "spring",
        DataCollaboration(n_clusters=3, n_init=4, dimensions="all"),
        Layout.lattice(3),
    )
    terms = repeated(house, "--protocol", "llf")
    assert terms.protocol.name == "llf"
    assert terms.protocol.params["n_clusters"] == 3
    assert "nosuch" in repeated(house, "--protocol", "nosuch", code=1)


def test_a_preparation_holds_for_the_variables_that_stay(
    house: House, tmp_path: Path
) -> None:
    plan = Preparation(
        missing="drop", fields=(Treatment(name="a", weight=2), Treatment(name="b"))
    )
    house.open(
        "spring",
        LosslessFederated(n_clusters=3),
        Layout.lattice(3),
        dictionary=[numeric_schema(("a", "b"), -1, 1)],
        preparation=[plan],
    )
    schema = tmp_path / "schema.json"
    schema.write_text(numeric_schema(("b", "c"), -1, 1).model_dump_json())
    terms = repeated(house, "--schema", str(schema))
    assert [field.name for field in terms.preparation[0].fields] == ["b"]
    assert terms.preparation[0].missing == "drop"


def test_invitations_are_private_and_letters_have_no_secrets(
    house: House, tmp_path: Path
) -> None:
    session = opened(house, "spring")
    invitations = session.invite()
    folder = tmp_path / "letters"
    prepare_letter_folder(folder, invitations)
    write_letters(folder, session.terms, invitations)
    for slot, invitation in invitations.items():
        path = folder / f"{slot}.invitation"
        assert path.read_text().strip() == invitation
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        text = (folder / f"{slot}.md").read_text()
        parsed = Invitation.parse(invitation)
        assert parsed.code not in text
        assert parsed.secret.hex() not in text
        assert f"coterie party terms {slot}.invitation" in text
        names = "a; b" if slot.endswith("c1") else "c; d"
        assert f"Columns of your table: {names}" in text


def test_invitations_of_named_parties_need_no_status(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(house, "spring")
    monkeypatch.setattr(type(session), "status", Mock(side_effect=AssertionError))
    words = ("spring", "--party", "r1c1", "--invitations", str(tmp_path / "new"))
    done = CliRunner().invoke(invite, words, obj=lambda: house.coordinator)
    assert done.exit_code == 0, (done.output, done.exception)


def test_a_script_may_name_a_new_folder_of_invitations(
    house: House, tmp_path: Path
) -> None:
    session = opened(house, "spring")
    repeated(house, "--invitations", str(tmp_path / "new"))
    assert {path.stem for path in (tmp_path / "new").glob("*.invitation")} == {
        *session.terms.layout.names
    }


def test_only_invitations_and_letters_of_the_session_are_replaced(
    house: House, tmp_path: Path
) -> None:
    session = opened(house, "spring")
    slots = session.terms.layout.names
    write_letters(tmp_path, session.terms, session.invite())
    (tmp_path / f"{slots[0]}.invitation").unlink()  # it was sent
    prepare_letter_folder(tmp_path, slots, session.url, session.terms)
    with pytest.raises(InvalidParameters, match=r"contains .*\.invitation"):
        prepare_letter_folder(tmp_path, slots, "https://b.example", session.terms)
    (tmp_path / f"{slots[0]}.md").write_text("mine")
    with pytest.raises(InvalidParameters, match=rf"contains {slots[0]}\.md"):
        prepare_letter_folder(tmp_path, slots, session.url, session.terms)
    prepare_letter_folder(tmp_path, slots[1:], session.url, session.terms)
    (tmp_path / f"{slots[1]}.md").write_text("mine, beside its invitation")
    with pytest.raises(InvalidParameters, match=rf"contains {slots[1]}\.md"):
        prepare_letter_folder(tmp_path, slots[1:], session.url, session.terms)


def test_a_letter_says_what_the_terms_say_for_people(house: House) -> None:
    session = house.coordinator.create_session(
        About(title="wards", purpose="beds", legal_basis="a contract", contact="me"),
        Dummy(),
        Layout.lattice(2),
        session_id="s",
    )
    text = compose_letter(session.terms, A)
    for said in (
        "# wards",
        "Purpose: beds",
        "Legal basis: a contract",
        "within 7 days",
    ):
        assert said in text


HOSTILE = (
    "[Click](https://evil.example)",
    "![x](https://evil.example/pixel.png)",
    "<script>alert(1)</script><a href='x'>",
    "<https://evil.example>",
    "**bold** _it_ `code` ~~gone~~",
    "\\[not escaped](x) \\\\[nor](this)",
)
MARK = re.compile(r"(?<!\\)(?:\\\\)*[`*_\[<~]")


@pytest.mark.threat(177)
@pytest.mark.parametrize("text", HOSTILE)
def test_what_people_wrote_is_text_in_a_letter(house: House, text: str) -> None:
    """No mark stands there that no backslash takes its meaning from."""
    session = house.coordinator.create_session(
        About(title=text, purpose=text, legal_basis=text, contact=text),
        Dummy(),
        Layout.lattice(2),
        session_id="s",
    )
    lines = compose_letter(session.terms, A).splitlines()
    said = [line for line in lines if line.startswith(("# ", "- "))]
    assert len(said) >= 5
    for line in said:
        assert not MARK.search(line)
    assert {re.sub(r"\\(.)", r"\1", line.split(" ", 1)[1]) for line in said} >= {text}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: f"Dear colleague,\nhere it is: <{text}>\nBest regards, a hospital",
        lambda text: "\n".join(text[i : i + 60] for i in range(0, len(text), 60)),
        lambda text: (
            "> " + "\n> ".join(text[i : i + 72] for i in range(0, len(text), 72))
        ),
        lambda text: f"see https://example.org/help first\r\n\r\n{text}\r\n",
    ],
    ids=["in words", "wrapped", "quoted", "after a link"],
)
def test_an_invitation_survives_a_mail(house: House, wrap: Any) -> None:
    session = house.open("mail", Dummy(), Layout.lattice(2))
    invitation = session.invite()[A]
    assert str(Invitation.parse(wrap(invitation))) == invitation


def test_a_coordinator_waits_longer(house: House) -> None:
    api: Any = house.api
    session = house.open("patience", Dummy(), Layout.lattice(2))
    before = session.status()
    after = session.extend(8 * 86_400)
    assert after.deadline == before.deadline + timedelta(days=8)
    assert after.waiting_since == before.waiting_since
    entries = session.audit().verified_entries()
    assert [entry["event"] for entry in entries].count("extended") == 1
    with pytest.raises(InvalidParameters, match="a later time"):
        session.extend(-20 * 86_400)
    with pytest.raises(InvalidParameters, match="at most a year"):
        session.extend(400 * 86_400)
    path, naive = f"/v1/sessions/{session.id}/deadline", "2040-01-01T00:00:00"
    refused = api.send("PUT", path, api.key(), json={"deadline": naive})
    assert refused.status_code == 422
    for days, state in ((7.5, SessionState.RECRUITING), (8, SessionState.EXPIRED)):
        api.clock.forward(days * 86_400)
        api.turn()
        assert session.status().state is state
    with pytest.raises(SessionOver):
        session.extend(3600)


def test_who_was_missing_is_named_when_a_session_expires(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    api.clock.forward(8 * 86_400)
    api.turn()
    status = session.status
    assert status["state"] == "expired"
    assert f"for parties to join until its deadline. Missing: {B}." in status["detail"]
    other = api.open(Dummy(), PARTS).join()
    other.put(A, other.reply(A))
    api.clock.forward(2 * 86_400)
    api.turn()
    assert f"in round 1 until its deadline. Missing: {B}." in other.status["detail"]
