"""A browser without eyes: it keeps cookies, follows forms and reads pages as XML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx

from coterie_pages.served_pages import HEADERS

if TYPE_CHECKING:
    from support.in_process import Api

FORM = "application/x-www-form-urlencoded"
ANSWER = "coterie-answer"


@dataclass
class Browser:
    """One browser at an analyst in this process."""

    api: Api
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._kept(self.api.send("GET", path, headers=self._headers(headers)))

    def post(
        self, path: str, fields: Mapping[str, str] | str, **headers: str
    ) -> httpx.Response:
        """Send a form as a page of the same site would, unless headers say otherwise.

        What it came to is looked at on the next page, as a browser does.
        """
        own = {"Content-Type": FORM, "Origin": str(self.api.client.base_url)}
        said = {**own, **{k.replace("_", "-"): v for k, v in headers.items()}}
        content = fields if isinstance(fields, str) else urlencode(fields)
        response = self.sent(path, content, said)
        if not any(name.endswith(ANSWER) for name in self.cookies):
            return response
        return self.get(response.headers["location"])

    def sent(
        self, path: str, content: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        """What a form comes to, before a browser continues."""
        given = self._headers(headers)
        return self._kept(
            self.api.send("POST", path, headers=given, content=content.encode())
        )

    def sign_in(self, key: str) -> httpx.Response:
        return self.post("/ui/sign-in", {"key": key})

    def token(self) -> str:
        """The token that forms of this visit carry."""
        [found] = {
            each.attrib["value"]
            for each in tree(self.get("/ui/sessions")).iter("input")
            if each.attrib.get("name") == "token"
        }
        return found

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given = {k.replace("_", "-"): v for k, v in headers.items() if v}
        return {**({"Cookie": cookie} if cookie else {}), **given}

    def _kept(self, response: httpx.Response) -> httpx.Response:
        self.api.client.cookies.clear()  # of all browsers at this analyst
        for name, value in HEADERS.items():
            if name != "Cache-Control":  # scripts and styles are kept
                assert response.headers[name] == value
        for line in response.headers.get_list("set-cookie"):
            name, _, rest = line.partition("=")
            value = rest.partition(";")[0].strip('"')
            self.cookies[name] = value
            if "Max-Age=0" in rest:
                del self.cookies[name]
        return response


def tree(response: httpx.Response) -> ElementTree.Element:
    """The page as another parser reads it: it is well-formed XML too."""
    first, _, rest = response.text.partition("\n")
    assert first == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)


def texts(response: httpx.Response) -> str:
    """All that a page says."""
    return " ".join(tree(response).itertext())
