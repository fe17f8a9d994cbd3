"""What a coordinator may say of a session beside protocol and layout."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

from clustering_protocols import registry
from clustering_protocols.contract import Params
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.recipe import Preparation
from clustering_protocols.release import Release
from clustering_protocols.schema import Schema
from clustering_protocols.terms import About, Deadlines, Guards, Identities, Layout

_T = TypeVar("_T")


class Wishes(TypedDict, total=False):
    """What terms may say; what is left out, or None, is as usual.

    Attributes
    ----------
    session_id : str
        Made from the title by default. Creating it again with the same terms changes
        nothing.
    seed : int
        Of the analyst's random starts; drawn by default.
    deadlines, guards
        How long parties have, and how many rows they need.
    expected : mapping
        By slot, the public key of the institution that alone may sit there; other slots
        are open to whoever has their invitation.
    dictionary : sequence of Schema
        What columns mean, of each column group: parties then find theirs by name.
    preparation : sequence of Preparation
        What becomes of the dictionary's fields, of each column group: of gaps, of
        categories.
    evaluation : Evaluation
        Several numbers of clusters, of which that of the parameters is the largest, and
        how one of them is chosen.
    release : Release
        Who may read what the clusters are like; needs a dictionary.
    new_analyst : bool
        Whether the analyst at this address may show another key than it did when a
        session was opened from this home before.
    """

    session_id: str | None
    seed: int | None
    deadlines: Deadlines | None
    guards: Guards | None
    expected: Mapping[str, str] | None
    dictionary: Sequence[Schema] | None
    preparation: Sequence[Preparation] | None
    evaluation: Evaluation | None
    release: Release | None
    new_analyst: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Terms as exact text, and the proposal from which the analyst makes the same."""

    session: str
    proposal: registry.Proposal
    terms: bytes

    @property
    def body(self) -> dict[str, Any]:
        """Return what the analyst is asked for, in its own form."""
        body = self.proposal.model_dump(mode="json")
        choice = {"name": self.proposal.protocol, "params": body.pop("params")}
        return {**body, "protocol": choice}


def proposed(
    about: About,
    params: Params,
    layout: Layout,
    identities: Identities,
    wishes: Wishes,
) -> registry.Proposal:
    """Return what the analyst is asked for."""
    seed = wishes.get("seed")
    return registry.Proposal(
        about=about,
        protocol=registry.name_of(params),
        params=params.model_dump(mode="json"),
        layout=layout,
        identities=identities,
        dictionary=_fixed(wishes.get("dictionary")),
        preparation=_fixed(wishes.get("preparation")),
        evaluation=wishes.get("evaluation"),
        release=wishes.get("release"),
        seed=secrets.randbits(52) if seed is None else seed,
        deadlines=wishes.get("deadlines") or Deadlines(),
        guards=wishes.get("guards") or Guards(),
    )


def _fixed(parts: Sequence[_T] | None) -> tuple[_T, ...] | None:
    return None if parts is None else tuple(parts)
