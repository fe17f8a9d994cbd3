"""What stands around a page that is served: where one is, who one is, where to go."""

from __future__ import annotations

from pydantic import Field

from clustering_protocols.common.values import Value


class Link(Value):
    """A way to another page of the same pages.

    here: whether it leads to the page that is shown, or to what that page is part of.
    """

    href: str
    text: str
    here: bool = False


class Banner(Value):
    """What was just done, or why it was not.

    remedy: what to do now; empty where there is nothing to do.
    """

    text: str
    remedy: str = ""
    good: bool = True


class Frame(Value):
    """What is around a served page.

    place: whose pages these are, as people say it.
    root: the path under which all of them, scripts and styles are.
    address: the path of this page, for what is shown anew.
    links: the ways to other pages.
    who: who is signed in, in words; empty where nobody is.
    token: what every form sends back, so that no other site can send it.
    leave, leaving: where the form that signs out is sent, and what its button says; no
        address where there is none.
    notice: shown above the page.
    seconds: after how long the page is shown anew by itself; 0 for never.
    waits: whether something on the page waits for the person: its title says so.
    """

    place: str
    root: str
    address: str = ""
    links: tuple[Link, ...] = ()
    who: str = ""
    token: str = Field(default="", repr=False)
    leave: str = ""
    leaving: str = "Sign out"
    notice: Banner | None = None
    seconds: int = Field(default=0, ge=0)
    waits: bool = False
