"""Fields of a form, what was wrong with them, and the fields of match keys."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

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


class KeyLine(Value):
    """A match key, and how a table's rows look by it.

    figures: how many rows have a value, and how many one of their own, in words.
    first: the values of the first rows, in words: cells, for the own screen alone.
    serves: whether nearly each row has a value of its own.
    """

    key: str
    figures: str
    first: str = Field(repr=False)
    serves: bool


class KeysChoice(Value):
    """By which match keys a new session links rows that have no common id.

    table: one's own, on which the keys are tried.
    keys: one a line, the first counts first.
    lines: how that table's rows look by each.
    needs: what each party has to admit; empty where it need not.
    """

    table: FormField
    keys: FormField
    lines: tuple[KeyLine, ...] = ()
    needs: str = ""
