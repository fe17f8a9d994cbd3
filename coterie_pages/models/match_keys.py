"""Match keys on a page of the desk: how the rows of one's own table look by each."""

from __future__ import annotations

from pydantic import Field

from clustering_protocols.common.values import Value
from coterie_pages.models.fields import FormField


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
