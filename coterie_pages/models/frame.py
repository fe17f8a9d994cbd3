"""What stands around a page that is served: the ways to other pages, and a notice."""

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

    root: the path under which all of them, scripts and styles are.
    address: the path of this page, for what is shown anew.
    links: the ways to other pages.
    token: what every form sends back, so that no other site can send it.
    leave: where the form that leaves the desk is sent; empty where there is none.
    notice: shown above the page.
    seconds: after how long the page is shown anew by itself; 0 for never.
    waits: whether something on the page waits for the person: its title says so.
    """

    root: str
    address: str = ""
    links: tuple[Link, ...] = ()
    token: str = Field(default="", repr=False)
    leave: str = ""
    notice: Banner | None = None
    seconds: int = Field(default=0, ge=0)
    waits: bool = False
