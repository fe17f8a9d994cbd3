"""Differential privacy of all that a party uploads of its rows.

Two tables that differ in the row of one person, with the same ids, give uploads that
cannot be told apart beyond the budget. Where a code may lie follows from the ranges of
the data dictionary (:mod:`.declared`), so that one row moves its own codes alone. Every
code of a person costs its share: codes of all coordinates, subspaces and parties are about
the same people and add up; those of different people do not.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.budget import Account, PrivacyCost, noise, noise_scale

from . import subspaces
from .kernels import EncodedRows
from .params import PqmdsContext, Privacy

Mechanism = Literal["laplace", "gaussian"]

_STEPS: Final = (
    1024  # codes are rounded to so many steps of the range of their codebook
)


def release(context: PqmdsContext, encoded: EncodedRows) -> FloatArray:
    """Return codes (n, s) of known ranges with noise, as the terms say."""
    privacy = context.session.params.privacy
    account = Account(own_share(context, privacy))
    n_codes = _n_codes(context)
    share = PrivacyCost(privacy.epsilon / n_codes, privacy.delta / n_codes)
    mechanism: Mechanism = "gaussian" if privacy.mechanism == "gaussian" else "laplace"
    scale = noise_scale(mechanism, _STEPS, share)
    # The same noise whatever the attempt: a second draw would be a second release. Under
    # another agreement, other noise: at another scale the same would cancel.
    stream = context.lasting_stream(f"noise under {context.session.agreement_digest}")
    noisy = np.empty_like(encoded.codes)
    columns = zip(encoded.codes.T, encoded.bounds, strict=True)
    for number, (column, (low, high)) in enumerate(columns):
        account.spend(share)
        drawn = noise(mechanism, stream, scale, len(column))
        step = (high - low) / _STEPS
        noisy[:, number] = low + step * (np.rint((column - low) / step) + drawn)
    return noisy


def own_share(context: PqmdsContext, privacy: Privacy) -> PrivacyCost:
    """Return what this party's codes cost of the budget of a session."""
    share = subspaces.counts(context.session)[context.slot.name] / _n_codes(context)
    return PrivacyCost(privacy.epsilon * share, privacy.delta * share)


def _n_codes(context: PqmdsContext) -> int:
    return sum(subspaces.counts(context.session).values())
