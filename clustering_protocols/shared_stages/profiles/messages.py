"""Messages and memory records of the stage that computes profiles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from clustering_protocols.common.errors import Malformed
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import ByteArray, Spec, WordArray
from clustering_protocols.records.record import ReadableTable, Record
from clustering_protocols.shared_stages.profiles.totals import N_SUMS

MOST_CLUSTERS: Final = 10_000
_PROFILES: Final = TypeAdapter(tuple[Profile, ...])


class TakeLabels(Record):
    """Task: compute the labels of the chosen run from the result, and store them.

    figures, chosen: the figures of each run, and the number of the chosen run, as in
        the task of the session's last round.
    result: the slot's result, encoded.
    """

    kind = "take-labels"

    figures: list[Figures]
    chosen: int = Field(ge=0)
    result: Annotated[ByteArray, Spec("result")]


class LabelsTaken(Record):
    """Contribution: the number of clusters that this party can see in its outcome."""

    kind = "labels-taken"
    reach = "agreement"
    meaning = "How many clusters you know of."

    n_clusters: int = Field(ge=1, le=MOST_CLUSTERS)


class AddProfile(Record):
    """Task: send a share of the next sum.

    n_clusters: the number of clusters over all parties.
    total: the total of the previous sum; empty with the first.
    """

    kind = "add-profile"

    sum: int = Field(ge=1, le=N_SUMS)
    n_clusters: int = Field(ge=1, le=MOST_CLUSTERS)
    total: Annotated[WordArray, Spec("before")]


class ProfileShare(Record):
    """Contribution: the party's masked share of a sum; empty if its group is too small."""

    kind = "profile-share"
    reach = "hidden"
    meaning = "Sums of your values in each cluster, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec("words")]


class AddingProfile(Record):
    """The analyst's state.

    sum: the number of the current sum: 0 until the parties have stored their labels,
        N_SUMS + 1 after the last sum.
    """

    kind = "adding-profile"

    sum: int = 0
    n_clusters: int = 0


class TellProfile(Record):
    """Task: compute the profile, given the total of the last sum."""

    kind = "tell-profile"

    total: Annotated[WordArray, Spec("before")]


class ProfileTold(Record):
    """Contribution: the rounded profile as JSON, from leaders; empty from the others."""

    kind = "profile-told"
    meaning = "The rounded profile of the clusters of all parties."

    text: Annotated[ByteArray, Spec("characters")]

    @property
    def tables(self) -> tuple[ReadableTable, ...]:
        """Return the profile as a table; empty if the contribution has none."""
        return () if not len(self.text) else (parse_profile(self.text).table,)


class ReadProfiles(Record):
    """Task and memory: the rounded profiles, as JSON, of all groups that can pool sums."""

    kind = "read-profiles"

    text: Annotated[ByteArray, Spec("characters")]


class ProfilesRead(Record):
    """Contribution: confirms that the published profile agrees with the group's totals."""

    kind = "profiles-read"


class ProfiledClusters(Record):
    """Memory: the number of clusters that the analyst announced for the profile."""

    kind = "profiled-clusters"

    n_clusters: int


class ProfileMemory(Record):
    """Memory: the profile of this party's fields, exact and rounded, as JSON."""

    kind = "profiled"

    exact: Annotated[ByteArray, Spec("exact")]
    rounded: Annotated[ByteArray, Spec("rounded")]


def encode_profiles(profiles: Sequence[Profile]) -> ByteArray:
    """Encode profiles as JSON, uint8 (characters,)."""
    values = [profile.model_dump(mode="json") for profile in profiles]
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return np.frombuffer(text.encode(), np.uint8)


def parse_profiles(text: ByteArray) -> tuple[Profile, ...]:
    """Parse profiles from JSON; raise :class:`Malformed` if the bytes are not profiles."""
    try:
        return _PROFILES.validate_json(text.tobytes())
    except ValidationError:
        raise Malformed("These bytes are not profiles.") from None


def parse_profile(text: ByteArray) -> Profile:
    """Parse JSON that contains exactly one profile; raise :class:`Malformed` otherwise."""
    profiles = parse_profiles(text)
    if len(profiles) != 1:
        raise Malformed("There must be exactly one profile.")
    return profiles[0]


def profiles_in_memory(memory: Memory) -> tuple[Profile, ...]:
    """Return the stored profiles: the exact one first, then those of other groups."""
    own, published = memory.get(ProfileMemory), memory.get(ReadProfiles)
    exact = () if own is None else parse_profiles(own.exact)
    rounded = () if published is None else parse_profiles(published.text)
    columns = {profile.column for profile in exact if not profile.own}
    return (*exact, *(p for p in rounded if p.column not in columns))
