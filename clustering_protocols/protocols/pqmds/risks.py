"""The risk codes of `pqmds`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

RISKS: Final[Mapping[str, Risk]] = {
    "codes-show-cells": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.GEOMETRY,
        sentence="The analyst sees which of your rows share a cell of each subspace, "
        "and how cells lie along one direction.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Anyone with these codes who knows the distribution of your features "
        "can place rows along that direction.",
    ),
    "colluding-party-names-rows": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.ROWS_JOINTLY,
        sentence="If a party colludes with the analyst, the two know whose codes are "
        "whose.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="The other parties know the order in which rows are sent.",
    ),
    "single-feature-codes": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="Each feature has codes of its own: a public sample of it shows the "
        "analyst its values up to a cell's width.",
        remedy="sub_dim 2 or more.",
        detail="The terms say sub_dim 1.",
    ),
    "codes-give-features": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Anyone with these codes who knows a few of your rows can read the "
        "features of the others.",
        measured="On our tables R² was .3 to .9 with one coordinate, and .9 to 1 with "
        "all.",
        remedy="coordinates 1, the default.",
        detail="Several coordinates of each subspace are sent. An analyst who unmixes "
        "the codes comes near to that without any known row.",
    ),
    "noise-covers-one-row-once": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="The noise protects one row in this session alone; further sessions, "
        "tables and rows of the same person add up.",
        remedy="The policy 'epsilon_total' caps all sessions over one table.",
        detail="The noise bounds what this session reveals of one row.",
    ),
    **shared_risks.RISKS,
    **row_alignment.RISKS,
}
