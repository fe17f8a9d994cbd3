"""All files of an export: the own table, the profile, and a script that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clustering_protocols.common.errors import GuardRefused, InvalidParameters
from clustering_protocols.numerics.outcomes import OutcomeTable
from clustering_protocols.numerics.profiles import Profile
from party_sdk.results.exports import labelled_tables
from party_sdk.results.exports.labelled_tables import ExportColumn
from party_sdk.results.exports.profile_tables import profile_table
from party_sdk.results.exports.r_scripts import r_script
from party_sdk.results.label_files import write_arrow

FORMATS: Final = tuple(ending[1:] for ending in labelled_tables.ENDINGS)
_TEXT, _SHEET = "csv", "xlsx"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Export:
    """A result to be written for other programs.

    stem: with what the names of the files begin.
    columns: the own table with the clusters; empty without a table.
    profiles, outcomes: what the clusters are like.
    names: of the clusters, by number.
    """

    session: str
    stem: str
    columns: Sequence[ExportColumn]
    profiles: Sequence[Profile]
    outcomes: Sequence[OutcomeTable]
    names: Sequence[str] = ()

    def files(self, formats: Sequence[str]) -> list[str]:
        """Return the names of the files that these formats make.

        Raises InvalidParameters if a format is unknown, or there is nothing to write.
        """
        for each in formats:
            if each not in FORMATS:
                raise InvalidParameters(
                    f"There is no format {each!r}: take {', '.join(FORMATS)}."
                )
        found = [self._table(each) for each in formats if self.columns]
        if self.profiles:
            found += [self._profile(e) for e in formats if e in (_TEXT, _SHEET)]
        if _TEXT in formats and self.columns and self.profiles:
            found.append(f"{self.stem}.R")
        if not found:
            raise InvalidParameters(
                "There is nothing to export: name your table (--data), or take csv or "
                "xlsx for the profile."
            )
        return found

    def write(self, folder: Path, formats: Sequence[str], *, force: bool) -> list[Path]:
        """Write the files into a folder, which is made where it is missing.

        Raises GuardRefused if one of them is there already, unless ``force``.
        """
        paths = [folder / name for name in self.files(formats)]
        there = [path.name for path in paths if path.exists() or path.is_symlink()]
        if there and not force:
            raise GuardRefused(
                f"{there[0]!r} is there already: name another folder, or --force."
            )
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            self.write_file(path)
        return paths

    def write_file(self, path: Path) -> None:
        """Write one of the files, by its name."""
        if path.name == f"{self.stem}.R":
            path.write_text(self._script(), encoding="utf-8")
        elif path.name in (self._profile(_TEXT), self._profile(_SHEET)):
            table = profile_table(self.profiles, self.outcomes, self.names)
            write_arrow(table, path, path.suffix)
        else:
            labelled_tables.write_columns(path, self.columns)

    def _table(self, ending: str) -> str:
        return f"{self.stem}-table.{ending}"

    def _profile(self, ending: str) -> str:
        return f"{self.stem}-profile.{ending}"

    def _script(self) -> str:
        cluster = next(self._clusters())
        return r_script(
            self.session,
            self._table(_TEXT),
            self._profile(_TEXT),
            cluster.name,
            list(cluster.levels.values()),
        )

    def _clusters(self) -> Iterator[ExportColumn]:
        return (each for each in self.columns if each.title == "Cluster")
