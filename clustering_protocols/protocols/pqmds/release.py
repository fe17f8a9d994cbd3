"""Differential privacy of the codes that are uploaded.

What is covered: two uploads that differ in the row of one person, under the same
codebooks, cannot be told apart beyond the budget. The codebooks, which come from the
rows too and stay at home, are not covered. Every code of a person costs its share: codes
of all subspaces and of all parties are about the same people and add up; those of
different people do not.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.errors import GuardRefused
from clustering_protocols.secrecy.budget import Account, Cost, noise, noise_scale

from . import subspaces
from .params import (
    PqmdsContext,
    Privacy,
)

_STEPS: Final = 1024  # codes are rounded to so many steps of their range


class Released(NamedTuple):
    """Codes (n, s) as uploaded, and what they cost each person."""

    codes: FloatArray
    spent: Cost


def release(context: PqmdsContext, codes: FloatArray) -> Released:
    """Return the codes with noise, as the terms say.

    Raises
    ------
    GuardRefused
        If the session would spend more than this party allows.
    """
    privacy = context.session.params.privacy
    if privacy.mechanism == "none":
        return Released(codes, Cost(0.0, 0.0))
    _check_limit(context, privacy)
    n_codes = sum(subspaces.counts(context.session).values())
    share = Cost(privacy.epsilon / n_codes, privacy.delta / n_codes)
    account = Account(Cost(privacy.epsilon, privacy.delta))
    scale = noise_scale(privacy.mechanism, _STEPS, share)
    # the same noise whatever the attempt: a second draw would be a second release
    stream = context.lasting_stream("noise")
    noisy = np.empty_like(codes)
    for number, column in enumerate(codes.T):
        account.spend(share)
        drawn = noise(privacy.mechanism, stream, scale, len(column))
        noisy[:, number] = _on_steps(column, drawn.astype(np.float64))
    return Released(noisy, account.spent)


def _on_steps(column: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return codes rounded to steps of their range, moved by so many steps."""
    low = column.min()
    step = (column.max() - low) / _STEPS
    if step == 0:
        return column
    moved: FloatArray = low + step * (np.rint((column - low) / step) + drawn)
    return moved


def _check_limit(context: PqmdsContext, privacy: Privacy) -> None:
    """Refuse terms beyond what this party allows for its people over all sessions."""
    limit = context.choices.get("epsilon_limit")
    if limit is None:
        return
    earlier = Cost(float(context.choices.get("epsilon_spent", 0.0)), 0.0)
    account = Account(Cost(float(limit), 1.0), earlier)
    try:
        account.spend(Cost(privacy.epsilon, privacy.delta))
    except GuardRefused as refused:
        raise GuardRefused(f"{refused.detail} See 'epsilon_limit'.") from None
