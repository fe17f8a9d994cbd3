"""A table that has not been read yet, with the options for reading it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from clustering_protocols.common.errors import GuardRefused, InvalidData
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.terms.terms import Terms
from party_sdk.admission.table_admission import (
    SlotFields,
    admitted_table_of,
    check_required_fields,
    match_key_values_of,
    row_warnings,
    slot_fields_of,
)
from party_sdk.home.policy import Policy
from party_sdk.tables.mapping import TableMapping

if TYPE_CHECKING:
    from clustering_protocols.terms.schema import Schema
    from party_sdk.tables import CheckReport, ReadOptions, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A table to open, named by a command, a form, an order or Python, with options.

    path: a file, or any other table that :func:`party_sdk.tables.open_table` accepts.
    long_form: ``OBJECT,ITEM[,COUNT]`` for a file with one line per object and item.
    objects_file: the file with the ids of all objects; only used with ``long_form``.
    on_open: called with this object and the data source once the table has been read.
    name_ids: called if no id column is named. It gets the candidate columns, and the
        most likely one or None. It returns the id column, or None if the table has no
        ids.
    """

    path: Any
    options: ReadOptions
    long_form: str | None = None
    objects_file: Path | None = None
    on_open: Callable[[TableSpec, DataSource], None] | None = None
    name_ids: Callable[[Sequence[str], str | None], str | None] | None = None

    def with_mapping(self, mapping: TableMapping | None) -> Self:
        """Return a copy of this specification that has another mapping."""
        return replace(self, options=replace(self.options, mapping=mapping))

    def open(
        self,
        terms_fields: SlotFields | None = None,
        columns: Sequence[str] | None = None,
    ) -> DataSource:
        """Open the table and return its rows.

        terms_fields: the fields that the terms set; a dictionary among them replaces
            the operator's dictionary.
        columns: the columns of the session, used if the operator names none.

        Raises InvalidData if the table cannot be read, or does not satisfy the terms.
        """
        from party_sdk.tables import LongForm, open_long_form, open_source_of, read_ids

        options = self._build_options(terms_fields)
        options = replace(options, columns=options.columns or columns or None)
        if self.long_form is None:
            data = open_source_of(self.path, options)
            if terms_fields is not None:
                check_required_fields(terms_fields, data)
        else:
            form = LongForm.parse(self.long_form)
            objects = read_ids(self.objects_file) if self.objects_file else None
            data = open_long_form(Path(self.path), form, objects, options)
        if self.on_open is not None:
            self.on_open(self, data)
        return data

    def examine(self, terms_fields: SlotFields | None = None) -> CheckReport:
        """Return a report on how the table is read, and on its problems."""
        from party_sdk.tables import examine_table

        return examine_table(self.path, self._build_options(terms_fields))[0]

    def check_table(self, terms: Terms, slot: str) -> CheckReport:
        """Return a report on whether the table can take part in a session at a slot."""
        from party_sdk.tables import Finding
        from party_sdk.tables.linkage import summarise_keys

        options = self._build_options(slot_fields_of(terms, slot))
        report, data = self._check_obstacles(options)
        if data is None:
            return report
        problems = report.problems
        if not problems:
            try:
                admitted = admitted_table_of(terms, slot, data).data
                # Only the terms are checked: the party's policy is not known here.
                Policy(minimum_rows=0).check_min_rows(terms, admitted.n_rows)
            except (GuardRefused, InvalidData) as error:
                problems = (Finding(what=error.detail),)
        return report.model_copy(
            update={
                "problems": problems,
                "warnings": (*report.warnings, *row_warnings(terms, slot, data)),
                "match_keys": summarise_keys(match_key_values_of(terms, slot, data)),
            }
        )

    def check_new_rows(
        self, terms_fields: SlotFields, columns: Sequence[str]
    ) -> CheckReport:
        """Return a report on whether the table's rows can be labelled as new rows.

        terms_fields, columns: as :meth:`SlotFields.of_new_rows` returns them.
        """
        options = self._build_options(terms_fields)
        return self._check_obstacles(replace(options, columns=columns or None))[0]

    def _check_obstacles(
        self, options: ReadOptions
    ) -> tuple[CheckReport, Table | None]:
        """Read the table; obstacles count as problems, since the terms are final."""
        from party_sdk.tables import examine_table

        report, data = examine_table(self.path, options)
        update = {
            "problems": (*report.problems, *report.obstacles),
            "more_problems": report.more_problems + report.more_obstacles,
            "obstacles": (),
            "more_obstacles": 0,
        }
        return report.model_copy(update=update), data

    def _build_options(self, terms_fields: SlotFields | None) -> ReadOptions:
        if terms_fields is None:
            return self.options
        schema, preparation, match_key_columns = terms_fields
        options = replace(self.options, match_key_columns=match_key_columns)
        if self.name_ids and not (options.id_columns or match_key_columns):
            id_column = self._name_id_column(schema)
            options = replace(options, id_column=id_column)
        if schema is None:
            return options
        return replace(options, schema=schema, preparation=preparation)

    def _name_id_column(self, schema: Schema | None) -> str | None:
        from party_sdk.tables.drafts import find_id_column

        options = self.options
        if (
            not self.name_ids
            or self.long_form is not None
            or options.mapping is not None
        ):
            return None
        allow = (*options.allow, "running-number")
        plain = replace(options, columns=None, schema=None, allow=allow)
        fields = {*(options.columns or ()), *(() if schema is None else schema.names)}
        columns, id_column = find_id_column(self.path, plain, fields)
        return self.name_ids(columns, id_column)
