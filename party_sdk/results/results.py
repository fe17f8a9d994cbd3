"""A party's result: the labels of its rows, in the order of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering_protocols.common.errors import GuardRefused, InvalidData
from clustering_protocols.contract import Outcome, Placement
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.preparation import Preparation, select_placing_fields
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.session_risks import OTHER_UNITS
from clustering_protocols.wire.answers import RunLine
from party_sdk.results.label_files import (
    append_columns,
    check_ids,
    check_row_count,
    is_sparse,
    naming_of,
    open_rows_to_draw,
    write_labels,
)
from party_sdk.results.new_rows import Comparison, NewRows
from party_sdk.tables import IdColumns, Table, open_table
from party_sdk.tables.mapping import TableMapping

if TYPE_CHECKING:
    from party_sdk.results.plots import Picture


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """The result of a party, with rows in the order of its table.

    labels: int64 (n_rows,); the cluster of each row, from 0; -1 for rows in no cluster,
        and for rows that did not take part.
    cluster_sizes: int64 (n_clusters,) or None; the rows of all parties in each cluster.
    centroids, coordinates, memberships: float64 arrays; None unless the protocol and
        the terms release them. ``coordinates`` are the rows in the space of the
        centroids.
    covariances: float64 (n_clusters, n_columns, n_columns) or None; those of a mixture,
        around the centroids; 0 for columns of levels.
    item_memberships: float64 (n_clusters, n_columns) or None; how much each column
        belongs to each cluster, if columns are clustered too.
    ids, naming: the ids of the rows, and the names of the id columns.
    columns: the clustered columns, in the order of the session.
    figures: the quality measures of each run, if the protocol computes them.
    chosen: the index of the run that gave this result.
    profiles: the profiles of the clusters, if released: first the exact ones over the
        party's own fields, then the rounded ones for all members.
    report: further information from the protocol for the operator.
    """

    labels: IntArray = field(repr=False)
    cluster_sizes: IntArray | None
    centroids: FloatArray | None = field(repr=False)
    covariances: FloatArray | None = field(repr=False)
    coordinates: FloatArray | None = field(repr=False)
    memberships: FloatArray | None = field(repr=False)
    item_memberships: FloatArray | None = field(repr=False)
    ids: Sequence[str] | None = field(repr=False)
    naming: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[Figures, ...] = field(repr=False)
    chosen: int
    profiles: tuple[Profile, ...] = field(repr=False)
    report: Mapping[str, Any]
    _predict: Callable[[DataSource], Placement] | None = field(repr=False)
    _schema: Schema | None = field(repr=False)
    _preparation: Preparation | None = field(repr=False)
    _compare: Callable[[DataSource, IntArray], Comparison] | None = field(
        default=None, repr=False
    )
    _mapping: TableMapping | None = field(default=None, repr=False)

    @property
    def is_description(self) -> bool:
        """Return whether variables were only described, and nothing was clustered."""
        return any(profile.is_description for profile in self.profiles)

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        data: DataSource | None,
        columns: Sequence[str] = (),
        schema: Schema | None = None,
        preparation: Preparation | None = None,
    ) -> Result:
        """Build a result from an outcome and the ids of the party's rows.

        schema, preparation: how to read new rows, which need no variables that are only
            described.
        """
        described = frozenset(() if schema is None else schema.described_names)
        parts = {f.name for f in fields(outcome)} & {f.name for f in fields(cls)}
        shared = {name: getattr(outcome, name) for name in parts}
        shared |= {
            "figures": tuple(outcome.figures),
            "profiles": tuple(outcome.profiles),
        }
        return cls(
            **shared,
            ids=None if data is None else data.ids,
            naming=naming_of(data),
            columns=tuple(name for name in columns if name not in described),
            _predict=outcome.predict,
            _schema=None
            if schema is None
            else select_placing_fields(schema, preparation),
            _preparation=preparation,
        )

    def predict(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        mapping: TableMapping | None = None,
        agree: Callable[[str], bool] | None = None,
    ) -> NewRows:
        """Label new rows locally with the released model; nothing is sent.

        table, id_column: as for :func:`open_table`. The session's columns are found by
            name, in any order. A matrix has no names, so its columns must be in the
            session's order.
        mapping: translates the table into the session's dictionary; by default the
            mapping that the session used.
        agree: called with a question if the rows seem to be in other units than the
            session's; returns whether to label them anyway.

        Raises GuardRefused if the terms release no model, or if the rows seem to be in
        other units and nobody agrees. Raises InvalidData if the table lacks a column of
        the session, or does not satisfy the terms.
        """
        place_rows = self.check_can_label_new_rows()
        data = self._open_new_rows(table, id_column, mapping)
        review = None if self._compare is None else self._compare(data, self.own_sizes)
        doubt = "" if review is None else review.unit_question
        if doubt and not (agree is not None and agree(doubt)):
            raise GuardRefused(
                doubt, remedy=f"Or allow it: --choice {OTHER_UNITS}=true."
            )
        return NewRows.from_placement(place_rows(data), data, review)

    @property
    def can_label_new_rows(self) -> bool:
        """Return whether the terms release a model that can label new rows."""
        return self._predict is not None

    def check_can_label_new_rows(self) -> Callable[[DataSource], Placement]:
        """Return the model that labels new rows; raise GuardRefused if none is released."""
        if self._predict is None:
            raise GuardRefused(
                "The terms of this session release no model that labels new rows. "
                "Those of 'dc' do with the parameter 'predictor'."
            )
        return self._predict

    def _open_new_rows(
        self, table: Any, id_column: IdColumns, mapping: TableMapping | None
    ) -> DataSource:
        is_matrix = isinstance(table, np.ndarray | DataSource) or is_sparse(table)
        session_mapping = self._mapping and self._mapping.for_new_rows()
        names = self.columns if self._schema is None else self._schema.names
        data = open_table(
            table,
            id_column=id_column,
            columns=None if is_matrix or not names else names,
            schema=self._schema,
            preparation=self._preparation,
            mapping=None if is_matrix else mapping or session_mapping,
        )
        if isinstance(table, Table) and data.columns != names:
            raise InvalidData(
                f"The session clustered the columns {', '.join(names[:20])}, in "
                "this order."
            )
        return data

    @property
    def own_sizes(self) -> IntArray:
        """Return the number of the party's own rows in each cluster."""
        n_clusters = 0 if self.cluster_sizes is None else len(self.cluster_sizes)
        clustered = self.labels[self.labels >= 0]
        counts: IntArray = np.bincount(clustered, minlength=n_clusters).astype(np.int64)
        return counts

    def to_frame(self, table: Any) -> Any:
        """Return a party's table with the labels appended as columns.

        table: the rows of the session, in the order in which they took part.

        Returns table of the same type: with a column ``label``, and ``membership_0 …``
            if there are memberships. ``_`` is appended to a name that is already taken.

        Raises InvalidData if these are not the rows of the session: their number
            differs or, if they have ids, the ids or their order.
        """
        self._check_ids(table)
        return append_columns(
            table, {"label": self.labels, **self._membership_columns()}
        )

    def plot(self, table: Any) -> Picture:
        """Draw a party's own rows on two principal axes, coloured by cluster.

        Notebooks display the picture.

        table: the rows of the session, in the order in which they took part. If there
            is a preparation, fields with levels are omitted, and missing values are
            replaced by the mean of their field.

        Raises InvalidData: as :meth:`to_frame` does.
        """
        from party_sdk.results.plots import draw_rows

        read_options = (self._schema, self._preparation, self._mapping)
        data = open_rows_to_draw(table, self.columns, *read_options)
        check_row_count(data.n_rows, len(self.labels))
        self._check_ids(table)
        return draw_rows(data, self)

    def _check_ids(self, table: Any) -> None:
        if self.ids is not None and self.naming:
            check_ids(table, self.ids, self.naming, self.columns, self._mapping)

    def _repr_html_(self) -> str:
        """Return sizes and quality measures as HTML for notebooks, without any row."""
        from coterie_pages import formatting as text

        own_sizes, all_sizes = self.own_sizes.tolist(), self.cluster_sizes
        sizes = [
            [
                text.name_cluster(k),
                text.format_number(n),
                "" if all_sizes is None else text.format_number(int(all_sizes[k])),
            ]
            for k, n in enumerate(own_sizes)
        ]
        if n_unassigned := len(self.labels) - sum(own_sizes):
            sizes.append(["no cluster", text.format_number(n_unassigned), ""])
        runs = [
            RunLine(
                n_clusters=figures.n_clusters,
                figures=figures.values,
                chosen=number == self.chosen,
            )
            for number, figures in enumerate(self.figures)
        ]
        names = text.figures_with_values(runs)
        lines = [
            [
                "*" if run.chosen and len(runs) > 1 else "",
                text.format_number(run.n_clusters),
                *(text.format_number(run.figures[name]) for name in names),
            ]
            for run in runs
        ]
        return (
            f"<div><p><b>Result</b>: {len(self.labels)} rows of this table</p>"
            f"{_html_table(['', 'own rows', 'rows of all parties'], sizes)}"
            f"{_html_table(['', 'clusters', *map(text.name_figure, names)], lines) if runs else ''}</div>"
        )

    def _membership_columns(self) -> dict[str, FloatArray]:
        columns = [] if self.memberships is None else list(self.memberships.T)
        return {f"membership_{k}": column for k, column in enumerate(columns)}

    def top_items(self, columns: Sequence[str], n: int = 10) -> list[list[str]]:
        """Return the n items with the largest memberships in each cluster.

        The list is empty if the protocol does not cluster items.
        """
        if self.item_memberships is None:
            return []
        order = np.argsort(-self.item_memberships, axis=1, kind="stable")[:, :n]
        return [[columns[item] for item in items] for items in order]

    def uncertainty(self, rows: DataSource) -> FloatArray | None:
        """Return the uncertainty (n,) of each row's label; see :class:`Placement`.

        Returns None if the party has neither memberships nor centres.

        rows: the party's rows, with the clustered columns.
        """
        if self.memberships is not None:
            uncertainty: FloatArray = 1.0 - self.memberships.max(axis=1)
            return uncertainty
        return None if self._predict is None else self._predict(rows).uncertainty

    def save(self, path: str | Path, uncertainty: FloatArray | None = None) -> Path:
        """Write labels and memberships, as CSV, Parquet or Excel by the extension.

        uncertainty: float64 (n_rows,); written as a further column if given.
        """
        more = self._membership_columns()
        if uncertainty is not None:
            more["uncertainty"] = uncertainty
        return write_labels(Path(path), self.labels, self.ids, self.naming, more)


def _html_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
