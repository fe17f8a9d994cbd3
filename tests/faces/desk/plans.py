"""A session as it is planned in the form of a desk, and what its pages say."""

import re
from typing import Any

import httpx
from support.browsing import tree
from support.desks import DeskBrowser

from party_sdk.analyst_client.invitations import Invitation

NEW = "/sessions/-/new"
HOSTILE = "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)>"
PLAN: dict[str, Any] = {
    "protocol": "llf",
    "param.n_clusters": "3",
    "title": "Wards",
    "slot.name": ["north", "south", "west"],
    "slot.title": ["North Clinic", "", ""],
    "slot.row": ["1", "2", "3"],
    "slot.column": ["1", "1", "1"],
    "slot.expected": ["", "", ""],
    "do": "review",
}


def plan(**changed: Any) -> dict[str, Any]:
    """What the form says; parameters begin with ``param_``."""
    named = {
        re.sub(
            "^(param|slot|dictionary|table|ids|levels|listed|field)_", r"\1.", name
        ): value
        for name, value in changed.items()
    }
    return {**PLAN, **named}


def hidden(page: httpx.Response) -> dict[str, list[str]]:
    """What the form that opens the session sends again."""
    found: dict[str, list[str]] = {}
    for each in tree(page).iter("input"):
        if each.attrib.get("type") == "hidden" and each.attrib["name"] != "token":
            found.setdefault(each.attrib["name"], []).append(each.attrib["value"])
    return found


def filled(page: httpx.Response) -> dict[str, list[str]]:
    """What the form of a new session sends if nothing is changed."""
    found: dict[str, list[str]] = {}
    for each in tree(page).iter():
        if each.tag not in {"input", "select", "textarea"}:
            continue
        name, kind = each.attrib.get("name", ""), each.attrib.get("type")
        if not name or name == "token" or kind == "checkbox":
            continue
        value = each.attrib.get("value", each.text or "")
        if each.tag == "select":
            chosen = [o for o in each.iter("option") if "selected" in o.attrib]
            value = chosen[0].attrib["value"] if chosen else ""
        found.setdefault(name, []).append(value)
    return found


def invitations(page: httpx.Response) -> list[Invitation]:
    return [Invitation.parse(each.text or "") for each in tree(page).iter("textarea")]


def opened(desk: DeskBrowser, **changed: Any) -> list[Invitation]:
    review = desk.post(NEW, plan(**changed))
    return invitations(desk.post(NEW, {**hidden(review), "do": "open"}))


def wrong(page: httpx.Response) -> dict[str, str]:
    root = tree(page)
    said = {each.attrib.get("id"): "".join(each.itertext()) for each in root.iter("p")}
    marked = {}
    for kind in ("input", "select"):
        for each in root.iter(kind):
            if each.attrib.get("aria-invalid"):
                ids = each.attrib["aria-describedby"].split()
                marked[each.attrib["name"]] = said[ids[-1]]
    return marked
