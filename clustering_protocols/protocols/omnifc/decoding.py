"""From answers to squared distances, block by block, and the search for a corrupt one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.secrecy import field as field_words

from . import coding, lagrange
from .params import OmniFC

Answers = Mapping[str, WordArray]
"""The answers by slot, in slot order; mapped files, which are read once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistanceDecoder:
    """Reads squared distances out of answers, some pairs at a time.

    slots: all slots: their order says which share point is whose.
    answers: mapping of slot to uint64 (pairs,); of all slots with ``hide_segments``,
        else of at least 2 l + 2 t - 1.
    bits: q.
    weights, checks, order: of the first answers, of all, and whose they are.
    """

    params: OmniFC
    slots: Sequence[str]
    answers: Answers = field(repr=False)
    bits: int
    weights: Sequence[int] = field(repr=False)
    checks: lagrange.Matrix = field(repr=False)
    order: Sequence[str]

    @classmethod
    def of(
        cls, params: OmniFC, slots: Sequence[str], answers: Answers, bits: int
    ) -> DistanceDecoder:
        """Return what reads these answers; :class:`ProtocolFailed` of too few."""
        weights, checks, order = _weights(params, slots, answers)
        return cls(
            params=params,
            slots=slots,
            answers=answers,
            bits=bits,
            weights=weights,
            checks=checks,
            order=order,
        )

    def read(self, pairs: slice) -> FloatArray:
        """Return the squared distances of some pairs, 2^{-2q} D̃.

        Raises ProtocolFailed if there are more answers than needed and they contradict
            each other here.
        """
        parts = [self.answers[slot][pairs] for slot in self.order]
        squared = np.empty(len(parts[0]))
        scratch: WordArray = np.empty(field_words.BLOCK, dtype=np.uint64)
        for begin in range(0, len(squared), field_words.BLOCK):
            rows = slice(begin, begin + field_words.BLOCK)
            pieces = [part[rows] for part in parts]
            total = scratch[: len(pieces[0])]
            if not _consistent(self.checks, pieces, total):
                raise _contradiction(self.params, self.slots, self.answers)
            total.fill(0)
            coding.add_combination(total, self.weights, pieces[: len(self.weights)])
            field_words.to_real(total, 2.0 ** (-2 * self.bits), squared[rows])
        return squared


def _consistent(
    checks: lagrange.Matrix, pieces: Sequence[WordArray], total: WordArray
) -> bool:
    """Return whether all checks give zero; total is overwritten."""
    for weights in checks:
        total.fill(0)
        coding.add_combination(total, weights, pieces)
        field_words.settle(total)
        if total.any():
            return False
    return True


def _weights(
    params: OmniFC, slots: Sequence[str], answers: Answers
) -> tuple[list[int], lagrange.Matrix, list[str]]:
    """Return decoding weights of the first answers, checks of all, and their order."""
    order = [slot for slot in slots if slot in answers]
    if params.hide_segments:  # the parties have weighted their answers
        return [1] * len(order), [], order
    needed = lagrange.count_needed_values(params.segments, params.noise)
    if len(order) < needed:
        raise ProtocolFailed(f"{len(order)} answers came; {needed} are needed.")
    of_all = lagrange.share_points(len(slots))
    points = [of_all[slots.index(slot)] for slot in order]
    weights = lagrange.build_decoding_weights(params.segments, points[:needed])
    return weights, lagrange.checks(points, needed), order


def _contradiction(
    params: OmniFC, slots: Sequence[str], answers: Answers
) -> ProtocolFailed:
    """Return the error, with the party whose answer alone explains it.

    Left out, the others agree; that takes two answers more than needed.
    """
    needed = lagrange.count_needed_values(params.segments, params.noise)
    text = "The answers contradict each other: at least one is corrupt."
    if len(answers) < needed + 2:
        return ProtocolFailed(f"{text} {needed + 2} answers would show whose.")
    suspects = [
        slot for slot in answers if _agree(params, slots, answers, without=slot)
    ]
    if len(suspects) != 1:
        return ProtocolFailed(f"{text} It is not one alone.")
    return ProtocolFailed(f"{text} The others agree without {suspects[0]!r}.")


def _agree(
    params: OmniFC, slots: Sequence[str], answers: Answers, without: str
) -> bool:
    others = {slot: answer for slot, answer in answers.items() if slot != without}
    _, checks, order = _weights(params, slots, others)
    parts = [others[slot] for slot in order]
    scratch: WordArray = np.empty(len(parts[0]), dtype=np.uint64)
    return all(
        _consistent(checks, [part[rows] for part in parts], block)
        for rows, block in coding.blocks(scratch)
    )
