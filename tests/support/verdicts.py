"""Recorded verdicts of attacks and reported faults, and the check that they still hold.

A module keeps its verdicts in one table. Each test measures an outcome and compares it
with the verdict, so that it fails both when an attack stops working and when a mended
fault is not recorded: change the verdict together with the code.
"""

from dataclasses import dataclass
from typing import Literal

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError

ATTACKED: Literal["attacked"] = "attacked"
"""The attack succeeds: the attacker reads what the claim denies."""
RIGHT: Literal["right"] = "right"
"""The right thing happens, or the attack reads nothing: controls, and mended faults."""


@dataclass(frozen=True)
class Refused:
    """A refusal by one problem; ``because`` is a part of its detail that names the rule."""

    problem: Problem
    because: str


Verdict = Literal["attacked", "right"] | Refused


def check(measured: str | CoterieError, verdict: Verdict) -> None:
    """Compare an outcome, or the error that ended the case, with its verdict."""
    if isinstance(verdict, Refused):
        assert isinstance(measured, CoterieError), f"no refusal any more: {measured}"
        assert measured.problem is verdict.problem, measured
        assert verdict.because in measured.detail
        return
    if isinstance(measured, CoterieError):
        raise measured
    assert measured == verdict


def attacked(success: object) -> str:
    """Return the outcome of an attack that ran to its end."""
    return ATTACKED if success else RIGHT
