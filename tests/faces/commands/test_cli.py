"""The command line: help, exit codes, JSON, and what an operator sees."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from support.terminal import Terminal, accepting, answer_all, opened, read, running

from clustering_protocols import catalogue
from clustering_protocols.catalogue import check_choice_names
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.secrecy.keys import safety_number
from clustering_protocols.terms import captions
from clustering_protocols.terms.request_fields import request_fields
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.cli import main
from party_sdk.cli.parameters import LongCommand
from party_sdk.cli.terminal.asker import TerminalAsker
from party_sdk.lab.parties import default_lattice
from party_sdk.party.roster import Roster


def commands(
    command: click.Command = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, f"{name} is not installed"
            yield from commands(found, (*path, name))


COMMANDS = {" ".join(("coterie", *path)): (path, found) for path, found in commands()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_all_its_options_explain_themselves(
    terminal: Terminal, name: str
) -> None:
    path, command = COMMANDS[name]
    shown = terminal(*path, "--help").stdout
    assert shown.startswith("Usage:")
    assert command.help, "a command says what it does"
    if isinstance(command, LongCommand):
        assert len(shown.splitlines()) <= 60, "it has two levels for this"
        shown = terminal(*path, "--help-all").stdout
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.opts[0] in shown


def test_the_help_documents_every_exit_code(terminal: Terminal) -> None:
    words = " ".join(terminal("--help").stdout.split())
    assert all(f"Exit code {code}: " in words for code in range(8))


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("party", "run"),
        ("session", "list"),
        ("simulate", "dummy"),
        ("simulate", "dummy", "--data", "x.csv", "--row-groups", "0"),
        ("simulate", "dummy", "--data", "x.csv", "--seed", "-1"),
        ("session", "--url", "http://127.0.0.1", "--key", "k", "create"),
        ("serve", "--port", "many"),
        ("party", "run", "@missing"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(terminal: Terminal, words: tuple[str, ...]) -> None:
    assert "Usage:" in terminal(*words, expect=2).stderr


def assert_explained(result: Result, problem: Problem) -> None:
    assert problem.title in result.stderr
    assert f"What to do: {problem.remedy}" in result.stderr
    assert "Traceback" not in result.output


def test_who_opens_a_session_of_many_rows_is_told_what_it_takes(
    online: Terminal,
) -> None:
    create = ("session", "create", "Large", "--protocol", "omnifc")
    given = ("--clusters", 2, *(f"--party={name}" for name in "abc"))
    refused = online(*create, *given, "--rows", 50_000, expect=5)
    assert "omnifc takes at most 10,000 rows" in refused.stderr
    assert "landmarks" in refused.stderr
    assert "Large" not in online("session", "list").stdout
    assert "takes at most" not in online(*create, *given, "--rows", 5_000).stderr
    again = online(*create, *given, expect=5)
    assert "already contains a.invitation" in again.stderr
    assert "takes at most" not in online(*create, *given, "--invitations", "b").stderr
    assert online("session", "list").stdout.count("Large") == 2


def test_plain_http_to_another_machine_is_exit_code_3(online: Terminal) -> None:
    elsewhere = ("session", "--url", "http://analyst.example", "list")
    assert_explained(online(*elsewhere, expect=3), Problem.GUARD_REFUSED)


def test_a_session_that_fails_is_exit_code_4(online: Terminal, rows: Path) -> None:
    session, invitation = opened(online, "--param", "fail_at=count")
    run = running(online, invitation, rows)
    ended = online(*run, expect=4)
    assert_explained(ended, Problem.PROTOCOL_FAILED)
    assert "fail at 'count'" in ended.stderr
    assert not (online.folder / "labels.csv").exists()
    watched = online.json("session", "show", "--follow", session, expect=4)
    assert watched["type"] == Problem.PROTOCOL_FAILED.urn


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--protocol", "unknown"), "Known protocols: cohort, dc, describe"),
        (("--protocol", "dummy", "--param", "n_clusters"), "is not NAME=VALUE"),
        (("--protocol", "dummy", "--param", "n_clusters=8..2"), "list is empty"),
        (("--param", "n_clusters=2", "--param", "n_clusters=3"), "is given twice"),
        (("--param", "n_clusters=2", "--param", "anchor.kind=odd"), "anchor.kind"),
        (("--protocol", "dummy", "--id", "../elsewhere"), "is not a session id"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_parameters_that_do_not_fit_are_exit_code_5(
    online: Terminal, words: tuple[str, ...], said: str
) -> None:
    refused = online("session", "create", "Wards", *words, expect=5)
    assert_explained(refused, Problem.INVALID_PARAMETERS)
    assert said in refused.stderr


@pytest.mark.parametrize("command", ["show", "cancel", "report", "audit"])
def test_the_id_of_a_session_is_not_empty(online: Terminal, command: str) -> None:
    assert "is empty" in online("session", command, "", expect=2).stderr


def test_wrong_usage_is_told_to_programs_too(online: Terminal) -> None:
    create = ("session", "create", "Wards", "--param", "n_clusters=2")
    refused = online(*create, "--places", "--json", expect=2)
    assert "No such option" in refused.stderr
    told = json.loads(refused.stdout)
    assert "No such option" in told["detail"]
    assert (told["exit_code"], told["remedy"]) == (
        2,
        "See coterie session create --help.",
    )


@pytest.mark.parametrize(
    "content",
    ["", "00" * 31, "00" * 33, "0" * 63, "x" * 64, b"\xff" * 32, "0x" + "00" * 31],
    ids=["empty", "short", "long", "odd", "no digits", "raw bytes", "with a prefix"],
)
def test_an_entropy_file_that_is_malformed_is_refused(
    online: Terminal, content: str | bytes
) -> None:
    entropy = ("--entropy-file", online.file("entropy", content))
    create = ("session", "create", "Wards", "--protocol", "dummy", *entropy)
    refused = online(*create, expect=5)
    assert_explained(refused, Problem.INVALID_PARAMETERS)
    assert "64 hex digits" in refused.stderr


def test_a_key_comes_from_the_file_that_a_variable_names(
    online: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{online.environment.pop('COTERIE_KEY')}\n")
    online.environment["COTERIE_KEY_FILE"] = str(file)
    online("session", "list")
    file.unlink()
    missing = online("session", "list", expect=5)
    assert "COTERIE_KEY_FILE does not name a text file" in missing.stderr
    del online.environment["COTERIE_KEY_FILE"]
    assert "--key" in online("session", "list", expect=2).stderr


# Ids of several columns


def test_a_party_alone_runs_a_session_to_its_labels(
    online: Terminal, rows: Path
) -> None:
    session, invitation = opened(online, "--param", "n_clusters=3", "--seed", "1")
    joined = online.json("party", "run", invitation, *accepting(online, invitation))
    assert joined["session"] == session
    labels = online.folder / "out.csv"
    data = ("--data", rows, "--id-column", "id")
    accepted = accepting(online, invitation)
    run = ("party", "run", invitation, *data, "--labels", labels, *accepted)
    done = online(*run, "--json")
    document = json.loads(done.stdout)
    assert (document["session"], document["n_rows"]) == (session, 12)
    assert len(document["safety_number"].split()) == 12
    # which of its stages is seen is a matter of when it looks
    assert re.search(r"stage \d/4 |prepares the first round", done.stderr)
    assert done.stderr.endswith("completed\n")
    written = read(labels)
    assert [line["id"] for line in written] == [f"p{n:02}" for n in range(12)]
    assert [int(line["label"]) for line in written] == [n % 3 for n in range(12)]

    number = document["safety_number"]
    said = done.stderr + online("party", "run", invitation, *accepted).stdout
    for line in ("you are", "r1c1: ", f"safety number {number}"):
        assert line in said
    status = online.json("party", "status", session, "r1c1")
    assert status["safety_number"] == number
    assert [seat["slot"] for seat in status["members"]] == ["r1c1"]
    assert safety_number(status["agreement"].encode()) == number
    assert number in online("party", "status", session, "r1c1").stdout

    shown = online.json("session", "show", session)
    assert (shown["state"], shown["safety_number"]) == ("completed", number)
    assert online.json("session", "show", "--follow", session)["state"] == "completed"
    listed = {line["id"]: line for line in online.json("session", "list")}
    assert listed[session]["title"] == "Wards"

    online("party", "forget", session, "r1c1", "--yes")
    online("party", "run", session, "r1c1", *data, expect=7)


@pytest.mark.parametrize("told", [True, False])
def test_an_unknown_party_is_asked_about_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> None:
    roster = Roster(seats=(), safety_number="1")
    asker = TerminalAsker()
    assert asker.confirm_members(roster, is_known=False) is False, "nobody is there"
    with answer_all(monkeypatch, yes=told) as asked:
        assert asker.confirm_members(roster, is_known=False) is told
        assert asker.confirm_members(roster, is_known=True) is False
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("protocol", "said", "dealt"),
    [
        ("llf", (None, None), (3, 1)),
        ("llf", (None, 3), (1, 3)),
        ("llf", (1, None), (1, 3)),
        ("dc", (None, 2), (2, 2)),
        ("pqmds", (None, None), (1, 3)),
        ("pqmds", (None, 4), (1, 4)),
    ],
)
def test_a_table_is_dealt_out_as_the_protocol_takes_it(
    protocol: str, said: tuple[int | None, int | None], dealt: tuple[int, int]
) -> None:
    assert default_lattice(protocol, *said) == dealt


def test_a_misspelt_choice_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(InvalidParameters, match=r"'rebuild_limt'.*rebuild_limit"):
        check_choice_names("dc", ["rebuild_limt"])
    check_choice_names("dc", ["rebuild_limit", "transformer"])


@pytest.mark.parametrize(
    "command",
    [
        ("run", "FILE", "r1c1"),
        ("run", "TRUNCATED", "r1c1"),
        ("report", "TRUNCATED", "r1c1"),
        ("audit", "TEXT", "r1c1"),
        ("predict", "TEXT", "r1c1", "--data", "ROWS"),
        ("forget", "TEXT", "r1c1", "--yes"),
    ],
    ids=" ".join,
)
def test_no_error_prints_the_secret_of_an_invitation(
    online: Terminal, rows: Path, command: tuple[str, ...]
) -> None:
    _, invitation = opened(online)
    parsed = Invitation.parse(invitation)
    words = {
        "FILE": online.file("a.invitation", invitation),
        "TRUNCATED": online.file("b.invitation", invitation.rpartition("#")[2]),
        "TEXT": invitation,
        "ROWS": rows,
    }
    refused = CliRunner().invoke(
        main,
        ["party", *(str(words.get(word, word)) for word in command)],
        env=online.environment,
    )
    assert refused.exit_code != 0
    assert parsed.code not in refused.output
    assert parsed.secret.hex() not in refused.output


def test_an_invitation_may_be_followed_by_its_own_slot(online: Terminal) -> None:
    _, invitation = opened(online)
    file = online.file("a.invitation", invitation)
    accepted = accepting(online, invitation)
    other = online("party", "run", file, "r2c1", *accepted, expect=2)
    assert "The invitation is for slot r1c1, not r2c1." in other.stderr
    online("party", "run", file, "r1c1", *accepted)


OFFERED = [name for name, known in catalogue.catalogue().items() if known.methods]


@pytest.mark.parametrize("name", OFFERED)
def test_every_parameter_risk_and_choice_of_a_protocol_is_said(
    terminal: Terminal, name: str
) -> None:
    text = terminal("protocols", name).stdout
    known = catalogue.build_catalogue_entry(name)
    for field, schema in known["params"]["properties"].items():
        assert f"\n  {field}{'.' if '$ref' in schema else '  ('}" in text
    for code in (*known["risks"], *known["choices"], *known["learns"]):
        assert f"\n  {code}\n" in text
    assert max(map(len, text.splitlines())) <= 120
    assert terminal.json("protocols", name) == known


def test_every_option_of_a_new_session_asks_for_one_field() -> None:
    asked = [each.caption.flag for each in request_fields() if each.caption.flag]
    offered = [
        each.flag
        for each in vars(captions).values()
        if isinstance(each, captions.Caption) and each.flag
    ]
    assert sorted(asked) == sorted(offered)
    assert len(set(asked)) == len(asked) > 8
