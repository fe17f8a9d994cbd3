"""A remedy is that of the cause: who reads it at night types what it says."""

from __future__ import annotations

from support.terminal import Terminal

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, SessionOver, Unavailable


def test_an_error_says_its_own_remedy_or_that_of_its_problem() -> None:
    general = Unavailable("It is away.")
    own = Unavailable("It is away.", remedy="Read its log.")
    assert general.remedy == Problem.UNAVAILABLE.remedy
    assert str(own).endswith("It is away. Read its log.")
    again = CoterieError.__reduce__(own)
    copy = again[0](*again[1])
    vars(copy).update(again[2])
    assert (copy.detail, copy.remedy) == (own.detail, own.remedy)
    assert SessionOver("Over.", "failed").remedy == Problem.SESSION_OVER.remedy


def test_a_command_that_nobody_has_is_still_no_command(terminal: Terminal) -> None:
    assert "No such command 'srve'" in terminal("srve", expect=2).stderr


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
