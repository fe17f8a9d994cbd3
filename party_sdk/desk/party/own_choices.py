"""What a party decides alone of an order: which of its own limits hold, as a form asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.session_risks import CHOICES, LIMITS, SUMS_LIMIT
from coterie_pages.models.desk import OwnChoices, OwnTick
from coterie_pages.models.fields import FormField
from party_sdk.desk.responses import Form

_TICKS: Final = tuple(name for name in CHOICES if name != SUMS_LIMIT)


def typed_in(form: Form) -> dict[str, str]:
    """Return the choices of a form, as they were typed."""
    typed = {name: "true" for name in _TICKS if name in form.all("allow")}
    share = form.one(SUMS_LIMIT).strip()
    return {**typed, SUMS_LIMIT: share} if share else typed


def typed_before(choices: Mapping[str, Any]) -> dict[str, str]:
    """Return the choices of an order, as a form would send them."""
    typed = {name: "true" for name in _TICKS if choices.get(name)}
    share = choices.get(SUMS_LIMIT)
    return typed if share is None else {**typed, SUMS_LIMIT: f"{share:g}"}


def chosen_of(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return choices as an order holds them.

    Raises InvalidParameters if the share is no number from 0 to 1.
    """
    chosen: dict[str, Any] = {name: True for name in _TICKS if name in typed}
    if SUMS_LIMIT in typed:
        chosen[SUMS_LIMIT] = _share(typed[SUMS_LIMIT])
    return chosen


def taken_back(before: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Return the limits of an order before as the policy has them, with its share.

    A party that goes on keeps the choices that nobody names.
    """
    return {
        name: share if name == SUMS_LIMIT else False
        for name in before
        if name in LIMITS
    }


def shown_choices(typed: Mapping[str, str]) -> OwnChoices:
    """Return the part of a form that asks for them."""
    return OwnChoices(
        ticks=tuple(
            OwnTick(name=name, sentence=CHOICES[name], given=name in typed)
            for name in _TICKS
        ),
        share=FormField(
            name=SUMS_LIMIT,
            label=SUMS_LIMIT,
            kind="number",
            hint=f"{CHOICES[SUMS_LIMIT]} Leave it empty for what your policy says.",
            value=typed.get(SUMS_LIMIT, ""),
        ),
    )


def limit_in(sentence: str) -> str:
    """Return the first choice that a sentence names; empty if it names none."""
    return next((name for name in CHOICES if name in sentence), "")


def _share(text: str) -> float:
    try:
        share = float(text.replace(",", "."))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidParameters(f"{SUMS_LIMIT!r} is a share, from 0 to 1: type 0.5.")
    return share
