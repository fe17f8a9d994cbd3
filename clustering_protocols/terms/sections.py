"""Optional sections of terms: several numbers of clusters, profiles, and retention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, Self, cast, get_args

from pydantic import Field, model_validator

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.values import Section
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.terms.captions import (
    CHOOSE,
    DECADE,
    DELETE_WITHIN,
    KEEP_CONTRIBUTIONS,
    MIN_CLUSTER_ROWS,
    PROFILES,
    WITHIN,
)

Rule = Literal[
    "simplified_silhouette",
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
    "partition_coefficient",
    "xie_beni",
    "criterion",
    "aic",
    "bic",
    "icl",
    "entropy",
]
LEAST_IS_BEST: Final = frozenset(
    {"davies_bouldin", "xie_beni", "aic", "bic", "icl", "entropy"}
)
USUAL: Final[tuple[Rule, ...]] = (
    "simplified_silhouette",
    "calinski_harabasz",
    "partition_coefficient",
    "bic",
)
"""By default, the first of these figures that any run has selects the best run."""
MAX_RUNS: Final = 50


class Evaluation(Section):
    """Several numbers of clusters in one session, and the rule that selects one.

    The protocol's parameter ``n_clusters`` is the largest of these numbers, so that
    size checks cover all runs.
    """

    n_clusters: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] = Field(
        min_length=2, max_length=MAX_RUNS, description="One per run, ascending."
    )
    choose: Annotated[
        Rule | Literal["usual", "later"],
        replace(
            CHOOSE,
            choices={
                **CHOOSE.choices,
                **dict.fromkeys(get_args(Rule), "the best by {}"),
            },
        ),
    ] = Field(
        default="usual",
        description="The figure that selects the best run; among equal runs, the one with "
        f"fewer clusters. usual: the first of {', '.join(USUAL)} that any run has. later: "
        "the coordinator reads the figures of all runs, then chooses.",
    )
    within: Annotated[int, WITHIN] = Field(
        default=7 * 86_400,
        ge=1,
        le=366 * 86_400,
        description="If choose is 'later', the seconds after which 'usual' decides.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if list(self.n_clusters) != sorted(set(self.n_clusters)):
            raise ValueError("n_clusters must ascend, each number once")
        return self

    @property
    def sentence(self) -> str:
        """Return a phrase with the numbers of clusters and the selection rule."""
        numbers = ", ".join(map(str, self.n_clusters))
        rule = {
            "later": "the coordinator reads the figures of all and chooses one",
            "usual": "the usual rule chooses one",
        }.get(self.choose, f"the best by {self.choose} is selected")
        return f"runs with {numbers} clusters; {rule}"

    def check_figure(self, figures: Collection[str]) -> None:
        """Raise :class:`InvalidParameters` if ``choose`` is a figure not in ``figures``."""
        if self.choose not in {"usual", "later", *figures}:
            raise InvalidParameters(
                f"this protocol does not compute {self.choose!r} here; it computes "
                f"{', '.join(sorted({*figures} & {*get_args(Rule)}))}.",
                field="choose",
            )

    def deciding_figure(self, runs: Sequence[Figures]) -> Rule:
        """Return the figure that decides among runs unless the coordinator chooses.

        Raises InvalidParameters if no run has the figure.
        """
        is_figure = self.choose not in {"usual", "later"}
        for rule in cast("Sequence[Rule]", (self.choose,)) if is_figure else USUAL:
            if any(getattr(run, rule) is not None for run in runs):
                return rule
        if not is_figure and runs and all(run.n_clusters == 1 for run in runs):
            return USUAL[0]  # best() then returns the first run
        figures = self.choose if is_figure else f"any of {', '.join(USUAL)}"
        raise InvalidParameters(
            f"no run of this session has {figures}.", field="choose"
        )

    def best_run(self, runs: Sequence[Figures]) -> int:
        """Return the index of the run with the best value of the deciding figure.

        The index is 0 if all runs have one cluster. Raises InvalidParameters if no run
        has the figure.
        """
        rule = self.deciding_figure(runs)
        values = {run: getattr(figures, rule) for run, figures in enumerate(runs)}
        defined = {run: value for run, value in values.items() if value is not None}
        sign = 1 if rule in LEAST_IS_BEST else -1
        return min(defined, key=lambda run: (sign * defined[run], run), default=0)


class Release(Section):
    """The publication of cluster profiles, field by field, over all parties.

    If three or more parties hold the same fields, they compute one profile together.
    Otherwise each party computes a profile of its own rows and does not send it.
    """

    profiles: Annotated[Literal["members", "everybody"], PROFILES] = Field(
        description="members: each party reads the profile of the fields it holds. "
        "everybody: the coordinator and all parties read all profiles, rounded."
    )
    min_cluster_rows: Annotated[int, MIN_CLUSTER_ROWS] = Field(
        default=10,
        ge=5,
        le=1_000_000,
        description="Clusters with fewer rows share one line 'others'.",
    )

    @property
    def readers(self) -> Mapping[str, str]:
        """Return which profiles the analyst, a party and the coordinator read."""
        if self.profiles == "members":
            return {"party": "Profiles in its own variables."}
        rounded = "Rounded profiles."
        own = "Profiles in its own variables, and rounded profiles in others."
        return {"analyst": rounded, "party": own, "coordinator": rounded}

    @property
    def sentence(self) -> str:
        """Return a phrase that says who reads the profiles."""
        readers = {
            "members": "the parties that hold the same columns read them",
            "everybody": "all parties and the coordinator read them, rounded",
        }
        return (
            f"profiles of the clusters: {readers[self.profiles]}; clusters of fewer than "
            f"{self.min_cluster_rows} rows share a line"
        )


class Retention(Section):
    """The maximum time for which the analyst keeps contributions, and the session.

    Because the terms are signed, a party can hold the analyst to these times, whatever
    the analyst's settings say.
    """

    contributions: Annotated[int, KEEP_CONTRIBUTIONS] = Field(
        default=0,
        ge=0,
        le=DECADE,
        description="Seconds after the end of the session.",
    )
    session: Annotated[int, DELETE_WITHIN] = Field(
        ge=3600,  # parties need time to fetch their results
        le=DECADE,
        description="Seconds after its end until everything except the audit is deleted.",
    )

    @property
    def sentence(self) -> str:
        """Return a phrase that says when data are deleted."""
        deadline = f"within {_format_duration(self.contributions)} of the end"
        return (
            "the analyst deletes contributions "
            f"{deadline if self.contributions else 'at the end'}, and results, terms and "
            f"receipts within {_format_duration(self.session)} of the end; its audit stays"
        )


def _format_duration(seconds: int) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600)):
        if seconds and seconds % length == 0:
            count = seconds // length
            return f"{count:,} {unit}{'s' * (count > 1)}"
    return f"{seconds:,} seconds"
