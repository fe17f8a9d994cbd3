"""What a party decides alone of an order: which of its own limits hold, as a form asks."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Final, NamedTuple

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.session_risks import CHOICES, LIMITS, SUMS_LIMIT
from coterie_pages.models.desk import OwnChoices, OwnTick
from coterie_pages.models.fields import FormField
from party_sdk.desk.responses import Form
from party_sdk.supervisor import Order

IDS_PER_ROW: Final = "ids_per_row"
_TICKS: Final = tuple(name for name in CHOICES if name != SUMS_LIMIT)
_USUAL_QUOTA: Final = "Most ids that another party may bring for each of your rows."


class Quota(NamedTuple):
    """Whether others bring ids of one's rows, and why more have to be admitted."""

    counts: bool
    needs: str


def typed_in(form: Form) -> dict[str, str]:
    """Return the choices of a form, as they were typed."""
    typed = {name: "true" for name in _TICKS if name in form.all("allow")}
    numbers = {name: form.one(name).strip() for name in (SUMS_LIMIT, IDS_PER_ROW)}
    return typed | {name: text for name, text in numbers.items() if text}


def typed_before(order: Order | None) -> dict[str, str]:
    """Return what was decided for an order, as a form would send it."""
    if order is None:
        return {}
    typed = {name: "true" for name in _TICKS if order.choices.get(name)}
    said = {SUMS_LIMIT: order.choices.get(SUMS_LIMIT), IDS_PER_ROW: order.ids_per_row}
    return typed | {
        name: f"{each:g}" for name, each in said.items() if each is not None
    }


def chosen_of(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return choices as an order holds them.

    Raises InvalidParameters if the share is no number from 0 to 1.
    """
    chosen: dict[str, Any] = {name: True for name in _TICKS if name in typed}
    if SUMS_LIMIT in typed:
        chosen[SUMS_LIMIT] = _share(typed[SUMS_LIMIT])
    return chosen


def quota_of(typed: Mapping[str, str]) -> float | None:
    """Return how many ids others may bring for each own row; None for as the policy says.

    Raises InvalidParameters if that is no number.
    """
    if IDS_PER_ROW not in typed:
        return None
    return _number(typed[IDS_PER_ROW], IDS_PER_ROW, "a number, from 0: type 12.")


def taken_back(before: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Return the limits of an order before as the policy has them, with its share.

    A party that continues keeps the choices that nobody names.
    """
    return {
        name: share if name == SUMS_LIMIT else False
        for name in before
        if name in LIMITS
    }


def shown_choices(typed: Mapping[str, str], quota: Quota) -> OwnChoices:
    """Return the part of a form that asks for them."""
    return OwnChoices(
        ticks=tuple(
            OwnTick(name=name, sentence=CHOICES[name], given=name in typed)
            for name in _TICKS
        ),
        share=_ask_number(SUMS_LIMIT, CHOICES[SUMS_LIMIT], typed),
        quota=_ask_number(IDS_PER_ROW, quota.needs or _USUAL_QUOTA, typed)
        if quota.counts
        else None,
        needed=bool(quota.needs),
    )


def limit_in(sentence: str) -> str:
    """Return the first choice that a sentence names; empty if it names none."""
    return next((name for name in CHOICES if name in sentence), "")


def _ask_number(name: str, sentence: str, typed: Mapping[str, str]) -> FormField:
    return FormField(
        name=name,
        label=name,
        kind="number",
        hint=f"{sentence} Leave it empty for what your policy says.",
        value=typed.get(name, ""),
    )


def _share(text: str) -> float:
    what = "a share, from 0 to 1: type 0.5."
    return _number(text, SUMS_LIMIT, what, largest=1)


def _number(text: str, name: str, what: str, largest: float = inf) -> float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = -1.0
    if not 0 <= number <= largest:
        raise InvalidParameters(f"{name!r} is {what}")
    return number
