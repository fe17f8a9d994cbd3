"""A session as it is planned in the form of a desk, and what its pages say."""

import re
from typing import Any

import httpx
from lxml import html
from support.browsing import tree
from support.desks import DeskBrowser

from party_sdk.analyst_client.invitations import Invitation
from party_sdk.supervisor.orders import PartyOrder

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


def sent(page: httpx.Response, ending: str = "/new") -> dict[str, list[str]]:
    """What the form whose address ends so sends if nothing is changed."""
    [form] = [
        form
        for form in html.fromstring(page.text).forms
        if form.action.partition("#")[0].endswith(ending) and form.method == "POST"
    ]
    found: dict[str, list[str]] = {}
    for name, value in form.form_values():
        if name != "token":
            found.setdefault(name, []).append(value.strip("\n"))
    return found


def accepted(desk: DeskBrowser, invitation: Invitation) -> str:
    """Enter an invitation and accept its sheet; return the address of the party."""
    desk.post("/invitations", {"invitation": str(invitation)})
    place = f"/parties/{invitation.session}/{invitation.slot}"
    desk.accept(place)
    return place


def agrees(order: PartyOrder) -> bool:
    """Say yes to what is asked; return whether the order is over."""
    if (asked := order.question()) is not None:
        order.answer(asked.id, yes=True)
    return order.status().is_over


def invitations(page: httpx.Response) -> list[Invitation]:
    return [Invitation.parse(each.text or "") for each in tree(page).iter("textarea")]


def open_reviewed(desk: DeskBrowser, review: httpx.Response) -> list[Invitation]:
    """Open the session whose terms a page shows; return its invitations."""
    return invitations(desk.post(NEW, {**sent(review), "do": "open"}))


def opened(desk: DeskBrowser, **changed: Any) -> list[Invitation]:
    return open_reviewed(desk, desk.post(NEW, plan(**changed)))


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
