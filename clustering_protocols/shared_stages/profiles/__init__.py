"""Stage: describe the clusters of the chosen run, field by field.

The engine adds this stage after a protocol's last stage if the terms release profiles,
and sends the result with the first task. The stage is the same for all protocols: it
uses only labels, the fields of the dictionary, and the rows.

| round | task → contribution |
|---|---|
| 1 | `take-labels` → `labels-taken` |
| 2 to 7 | `add-profile` → `profile-share`: see :mod:`.totals` |
| 8 | `tell-profile` → `profile-told`: rounded, from leaders, if everybody may read it |
| 9 | `read-profiles` → `profiles-read`, if everybody may read them |

Parties read the exact totals of their own column group, and rounded profiles of the
others. If a column group is too small for masked sums, each of its parties describes
only its own rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clustering_protocols.contract import Exchange, Outcome, PartyContext, Stage
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.shared_stages.profiles import messages
from clustering_protocols.shared_stages.profiles.messages import TakeLabels
from clustering_protocols.shared_stages.profiles.totals import N_SUMS
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Audience

OutcomeReader = Callable[[PartyContext, TakeLabels, DataSource], Outcome]
"""A function that computes a party's outcome from the result in a TakeLabels task."""

NAME: Final = "profiles"


def build_stage(
    release: Release, read_outcome: OutcomeReader, results_to: Audience
) -> Stage:
    """Return the stage, which needs the secrets of column groups.

    read_outcome: the protocol's function that computes an outcome from a result.
    results_to: the kind of group whose members all receive the same result.
    """

    def analyst() -> Any:
        from clustering_protocols.shared_stages.profiles.roles import ProfilesAnalyst

        return ProfilesAnalyst(release)

    def party() -> Any:
        from clustering_protocols.shared_stages.profiles.roles import ProfilesParty

        return ProfilesParty(release, read_outcome)

    reading = Exchange(messages.ReadProfiles, messages.ProfilesRead)
    return Stage(
        name=NAME,
        analyst=analyst,
        party=party,
        exchanges=(
            Exchange(messages.TakeLabels, messages.LabelsTaken, audience=results_to),
            Exchange(
                messages.AddProfile,
                messages.ProfileShare,
                N_SUMS,
                N_SUMS,
                audience="column",
                fields=True,
            ),
            Exchange(messages.TellProfile, messages.ProfileTold, audience="column"),
            *([reading] if release.profiles == "everybody" else []),
        ),
    )
