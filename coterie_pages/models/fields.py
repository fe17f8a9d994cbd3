"""Fields of a form: what may be written into each, and what was wrong with it."""

from __future__ import annotations

from typing import Literal

from clustering_protocols.common.values import Value


class Option(Value):
    """One of several values, and how people call it."""

    value: str
    text: str


class FormField(Value):
    """A field of a form.

    name: what the form sends; a dot reaches into a part.
    label, hint: what it is called, and what it means.
    group: what it is about, of fields that forms put together.
    kind: ``choice``: one of the options, or empty for the default.
    limits: type and limits in words.
    usual: the default, as it would be written; empty where there is none.
    value: what stands in it.
    wrong: why that was refused.
    """

    name: str
    label: str
    hint: str = ""
    group: str = ""
    kind: Literal["text", "number", "choice", "long"] = "text"
    options: tuple[Option, ...] = ()
    limits: str = ""
    usual: str = ""
    required: bool = False
    value: str = ""
    wrong: str = ""
