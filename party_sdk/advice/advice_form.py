"""What is asked of somebody who looks for a protocol, at a terminal or in a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from clustering_protocols.common.suitability import Exposure, RoundBudget

ANY: Final = "any"


class Question(NamedTuple):
    """A question, the answers that it takes, and what counts where nobody answers.

    choices: empty where the answer is a number.
    default: None where an answer is needed; of trust, the answer that protects most.
    """

    text: str
    choices: tuple[str, ...] = ()
    default: Any = None


QUESTIONS: Final[Mapping[str, Question]] = {
    "partitioning": Question(
        "How is the data split (horizontal: other people at each party; vertical: "
        "other features of the same people; mixed: both)",
        ("horizontal", "vertical", "mixed"),
    ),
    "parties": Question("How many parties"),
    "overlap": Question(
        "Do all parties hold exactly the same patients",
        ("full", "partial"),
        "full",
    ),
    "rounds": Question(
        "How often can all parties answer",
        tuple(rounds.word for rounds in RoundBudget),
        "many",
    ),
    "analyst_sees": Question(
        "What may the analyst work out, beside the result (totals: sums over all "
        "parties; geometry: distances between rows)",
        tuple(sees.word for sees in Exposure if sees is not Exposure.ROWS),
        "nothing",
    ),
    "collusion": Question(
        "Might the analyst collude with one of the parties",
        ("no", "yes"),
        "yes",
    ),
    "data": Question(
        "What is the data (counts: co-occurrences of objects and items)",
        (ANY, "numeric", "counts"),
        ANY,
    ),
    "shape": Question(
        "Which clusters",
        (ANY, "spherical", "arbitrary", "fuzzy", "co-clusters"),
        ANY,
    ),
}
