"""A table that is named, and how it is read: not read yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

# Libraries of tables are imported when rows are read
if TYPE_CHECKING:
    from clustering_protocols.data import DataSource
    from clustering_protocols.terms import Terms
    from party_sdk.arriving import Agreed
    from party_sdk.tables import CheckReport, How


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table by its path or address.

    Attributes
    ----------
    long_form : str, optional
        ``OBJECT,ITEM[,COUNT]`` of a file with one line per object and item.
    objects_file : Path, optional
        With ``long_form``: the ids of all objects.
    """

    path: str
    how: How
    long_form: str | None = None
    objects_file: Path | None = None

    def open(
        self, agreed: Agreed | None = None, columns: Sequence[str] | None = None
    ) -> DataSource:
        """Return its rows.

        Parameters
        ----------
        agreed : Agreed, optional
            What the terms say of the fields, which counts instead of the operator's.
        columns : sequence of str, optional
            Of the session, where the operator names none.

        Raises
        ------
        InvalidData
            If it cannot be read, or does not fit.
        """
        how = self._by(agreed)
        how = replace(how, columns=how.columns or columns or None)
        if self.long_form is None:
            from party_sdk.tables import open_as

            return open_as(self.path, how)
        from party_sdk.tables.long_form import LongForm, open_long, read_objects

        form = LongForm.parse(self.long_form)
        objects = read_objects(self.objects_file) if self.objects_file else None
        return open_long(Path(self.path), form, objects, how.dialect)

    def checked(self, terms: Terms, slot: str) -> CheckReport:
        """Return what hinders the table from taking part at a slot."""
        from clustering_protocols.errors import GuardRefused, InvalidData
        from party_sdk.arriving import agreed_in, arrival_of
        from party_sdk.id_patterns import id_warnings
        from party_sdk.policy import Policy
        from party_sdk.tables import examine
        from party_sdk.tables.report import Finding

        report, read = examine(self.path, self._by(agreed_in(terms, slot)))
        found = () if read is None else tuple(read.unfit.shown)
        if read is not None and not found:
            try:
                arrived = arrival_of(terms, slot, read).data
                # of the terms alone: which policy will count is not known here
                Policy(minimum_rows=0).check_rows(terms, arrived.n_rows)
            except (GuardRefused, InvalidData) as refused:
                found = (Finding(what=refused.detail),)
        said = () if read is None else id_warnings(terms, slot, read)
        return report.model_copy(
            update={
                "problems": (*report.problems, *found),
                "warnings": (*report.warnings, *said),
            }
        )

    def _by(self, agreed: Agreed | None) -> How:
        if agreed is None or agreed.dictionary is None:
            return self.how
        return replace(
            self.how, schema=agreed.dictionary, preparation=agreed.preparation
        )
