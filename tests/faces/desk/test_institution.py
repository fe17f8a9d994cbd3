"""The desk asks for the institution's name once, and hands out its card."""

import json
from pathlib import Path

from support.browsing import texts
from support.desks import DeskBrowser

from clustering_protocols.secrecy.identities import fingerprint
from party_sdk.home.identities import OwnIdentity, TrustedInstitutions

QUESTION = "Which institution is this?"


def test_the_first_page_asks_for_the_name_until_there_is_one(
    browser: DeskBrowser,
) -> None:
    home = OwnIdentity(browser.desk.home)
    assert QUESTION in texts(browser.get("/"))
    assert browser.get("/card.json").is_error
    nameless = home.load_or_create()
    assert QUESTION in texts(browser.get("/"))
    refused = browser.post("/institution", {"name": " "})
    assert "1 to 100 printable" in texts(refused)
    page = browser.follow(browser.post("/institution", {"name": "North <b>Clinic</b>"}))
    assert QUESTION not in texts(page)
    assert "North <b>Clinic</b>" in texts(page)
    own = home.load()
    assert (own.name, own.key) == ("North <b>Clinic</b>", nameless.key)
    assert json.loads(browser.get("/card.json").content)["key"] == own.key


def test_a_card_is_trusted_after_its_key_was_compared(
    browser: DeskBrowser, tmp_path: Path
) -> None:
    other = OwnIdentity(tmp_path / "there").create("University <b>")
    card = other.card.model_dump_json()
    known = TrustedInstitutions(browser.desk.home)
    shown = browser.post("/cards", {"card": card})
    assert "Is this the key of University <b>?" in texts(shown)
    assert fingerprint(other.key) in texts(shown)
    assert known.keys_by_name() == {}, "it is shown first"
    page = browser.follow(browser.post("/cards", {"card": card, "trust": "yes"}))
    assert known.keys_by_name() == {"University <b>": other.key}
    assert fingerprint(other.key) in texts(page)
    liar = OwnIdentity(tmp_path / "elsewhere").create("University <b>")
    refused = browser.post("/cards", {"card": liar.card.model_dump_json()})
    assert "is known here with the key" in texts(refused)
    changed = card.replace("University", "Uniwersity")
    for wrong in (changed, "none", ""):
        browser.post("/cards", {"card": wrong, "trust": "yes"})
    assert known.keys_by_name() == {"University <b>": other.key}
