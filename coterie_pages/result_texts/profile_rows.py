"""A profile as a table: each variable of all parties, and of the own rows beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from coterie_pages.formatting import cell


class ProfileCell(NamedTuple):
    """A variable in one line: of all parties, and of the own rows where they are there."""

    all: str
    own: str


class ProfileRow(NamedTuple):
    """A variable in each line of a profile."""

    name: str
    difference: float
    cells: tuple[ProfileCell, ...]


class PairedProfile(NamedTuple):
    """A profile, and that of the own rows over the same variables, if there is one."""

    profile: Profile
    own: Profile | None

    @property
    def rows(self) -> Iterator[ProfileRow]:
        """Yield the variables, those that set clusters apart most first."""
        mine = {} if self.own is None else {f.name: f for f in self.own.fields}
        for field in self.profile.fields:
            title = field.title or field.name
            yield ProfileRow(
                name=f"{title}, {field.unit}" if field.unit else title,
                difference=field.difference,
                cells=tuple(
                    ProfileCell(
                        cell(field, place), self._own(mine.get(field.name), place)
                    )
                    for place in range(len(self.profile.n_rows))
                ),
            )

    def _own(self, field: FieldProfile | None, place: int) -> str:
        """Return what the own rows say of a line; empty where they have no such line."""
        if self.own is None or field is None:
            return ""
        clusters = self.profile.clusters
        if place < len(clusters) and clusters[place] in self.own.clusters:
            here = self.own.clusters.index(clusters[place])
            return cell(field, here, quartiles=False)
        same = place == len(clusters) and self.own.others == self.profile.others
        if not same:
            return ""
        return cell(field, len(self.own.clusters), quartiles=False)


def pair_profiles(profiles: Sequence[Profile]) -> list[PairedProfile]:
    """Return each profile of all parties with that of the own rows; then the others."""
    pooled = [each for each in profiles if not each.own]
    alone = [each for each in profiles if each.own]
    found, taken = [], set()
    for profile in pooled:
        mine = None
        if not profile.rounded:
            mine = next((each for each in alone if each.column == profile.column), None)
        if mine is not None:
            taken.add(id(mine))
        found.append(PairedProfile(profile, mine))
    return [*found, *(PairedProfile(e, None) for e in alone if id(e) not in taken)]
