"""A party of a session as it stands on this disk: the analyst is asked nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering_protocols import engine, session_terms
from clustering_protocols.common.errors import InvalidArray, NotReady
from clustering_protocols.contract import Outcome
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.row_selection import AdmittedRows, Arrival
from clustering_protocols.shared_stages.statistics.by_leader import OwnMoments
from clustering_protocols.terms.session_risks import SUMS_LIMIT
from clustering_protocols.terms.terms import Terms, read_terms
from party_sdk.admission.table_admission import (
    SlotFields,
    agreed_in,
    arrival_of,
    open_by,
    select_clustered,
    units_of,
)
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.home.policy import Policy
from party_sdk.party.party_session import Document, PartySession
from party_sdk.party.resume_checks import check_same_rows, data_digest
from party_sdk.results.trained_rows import (
    VariableMoments,
    measure_prepared,
    measure_variables,
)

# Libraries of tables are imported when rows are read: who joins has not come to that
if TYPE_CHECKING:
    from party_sdk.results.comparison import Comparison
    from party_sdk.results.new_rows import NewRows
    from party_sdk.results.results import Result
    from party_sdk.tables import IdColumns
    from party_sdk.tables.mapping import TableMapping


class PartyAtHome:
    """What a party knows by itself: its terms, its table, and what came of them."""

    def __init__(
        self,
        invitation: Invitation,
        folder: PartySession,
        policy: Policy,
        choices: Mapping[str, Any],
    ) -> None:
        self.invitation = invitation
        self.folder = folder
        self._identity = folder.load_identity()
        self._policy = policy.accept_risks(self._identity.accepted_risks)
        self._choices = choices

    @property
    def terms(self) -> Terms:
        """Return the terms that were previewed."""
        return read_terms(self._identity.terms.encode())

    def _check_same(self, digest: str) -> None:
        check_same_rows(self._identity.data_digest, digest)

    def _arrival(self, data: DataSource) -> Arrival:
        return arrival_of(self.terms, self.invitation.slot, data)

    def _complete(self, found: Result) -> Result:
        """Return a result that reads other tables as this party's own was read."""
        mapping = self.folder.mappings.last()
        return replace(found, _compare=self._compare, _mapping=mapping)

    def _open(
        self,
        table: Any,
        id_column: IdColumns,
        columns: list[str] | None,
        mapping: TableMapping | None,
        *,
        keeps: bool = True,
    ) -> DataSource:
        """Return a table as rows, by the mapping that counts; keep that if it is new."""
        if isinstance(table, DataSource):
            return table
        counts = self.folder.mappings.choose(mapping, lambda _: False)
        data = open_by(self.slot_fields, table, id_column, columns, counts)
        if keeps:
            self.keep_mapping(counts, data)
        return data

    def keep_mapping(
        self, mapping: TableMapping | None, data: DataSource | None = None
    ) -> None:
        """Keep a mapping of this party's table: from now on it counts.

        data: the table as it makes it.

        Raises GuardRefused if the party joined with other data.
        """
        if mapping is None:
            return
        kept, ledger = self.folder.mappings, self.folder.ledger
        if mapping != kept.last():
            if data is not None and self._identity.data_digest is not None:
                self._check_same(data_digest(data))
            kept.keep(mapping)
        digest = kept.digest(mapping)
        if (
            ledger.mapping_digest != digest
        ):  # a process that was killed in between wrote none
            ledger.note_mapping(kept.version, digest)

    @property
    def slot_fields(self) -> SlotFields:
        """Return what the terms say of the fields of this party's table, if they do."""
        return agreed_in(self.terms, self.invitation.slot)

    def select_clustered(
        self, data: DataSource, labels: IntArray
    ) -> tuple[DataSource, IntArray]:
        """Return rows as the columns that were clustered, and their labels.

        Once the session is over. Rows without a value that they need are left out.
        """
        memory = self.folder.load_state().answered.after
        return select_clustered(self.terms, self.invitation.slot, memory, data, labels)

    def units(self, data: DataSource) -> FloatArray:
        """Return by what the session divided each column (m,) of clustered rows."""
        memory = self.folder.load_state().answered.after
        return units_of(self.terms, self.invitation.slot, memory, data)

    def result(
        self,
        table: Any = None,
        *,
        id_column: IdColumns = None,
        columns: list[str] | None = None,
        mapping: TableMapping | None = None,
    ) -> Result:
        """Return the result of a completed session, from what is kept on this disk.

        table, id_column, columns, mapping: as for :meth:`run`: what the party joined
            with, whose ids then stand beside the labels. No id is kept: without the
            table rows are numbered, in its order.

        Raises NotReady if there is no result yet.
        Raises GuardRefused if it is another table, or its rows are in another order.
        """
        kept = self.folder.result
        if kept is None:
            raise NotReady("This party has no result yet: run it to the end.")
        data = None
        if table is not None:
            data = self._open(table, id_column, columns, mapping, keeps=False)
            self._check_same(data_digest(data))
        return self._complete(self._result_of(self._conclude(kept, None), data))

    def _result_of(self, outcome: Outcome, data: DataSource | None) -> Result:
        """Return an outcome with the ids of this party's rows beside it."""
        from party_sdk.results.results import Result

        dictionary, preparation, _ = self.slot_fields
        columns = self._identity.columns
        return Result.of(outcome, data, columns, dictionary, preparation)

    def predict(
        self,
        table: Any,
        *,
        id_column: IdColumns = None,
        agree: Callable[[str], bool] | None = None,
    ) -> NewRows:
        """Label new rows with the result that is kept here; nothing is sent.

        table, id_column, agree: as for :meth:`Result.predict`.

        Raises CoterieError: as of :meth:`result` and :meth:`Result.predict`.
        """
        return self.result().predict(table, id_column=id_column, agree=agree)

    def _keep_moments(self, data: DataSource) -> None:
        """Store moments of clustered rows, to compare new rows with them."""
        if session_terms.check_terms(self.terms).describes:
            return
        rows, _ = self.select_clustered(data, np.arange(data.n_rows, dtype=np.int64))
        is_prepared = self.terms.plan(self.invitation.slot) is not None
        variables = measure_variables(data) if is_prepared else None
        self.folder.save(Document.MOMENTS, measure_prepared(rows).encode())
        if variables is not None:
            self.folder.save(Document.VARIABLES, variables.encode())

    def _compare(self, data: DataSource, sizes: IntArray) -> Comparison:
        """Return new rows beside the trained ones.

        sizes: int64 (k,); own trained rows in each cluster.

        Raises NotReady if nothing of the trained rows is stored here.
        Raises InvalidData if no row has the values that it needs.
        """
        from party_sdk.results.comparison import Comparison  # only for new rows

        trained = self.folder.load(Document.MOMENTS)
        if trained is None:
            raise NotReady("This home keeps no summary of the trained rows.")
        variables = self.folder.load(Document.VARIABLES)
        numbers = np.arange(data.n_rows, dtype=np.int64)
        rows, numbers = self.select_clustered(data, numbers)
        return Comparison(
            terms=self.terms,
            slot=self.invitation.slot,
            trained=OwnMoments.decode(trained),
            variables=None if variables is None else VariableMoments.decode(variables),
            sizes=sizes,
            table=data,
            rows=rows,
            numbers=numbers,
        )

    def _conclude(self, result: bytes, data: DataSource | None) -> Outcome:
        """Return what a result says, in the order of the table; data as they arrived."""
        party = self._engine(self.folder.agreement or b"")
        last = self.folder.load_state()
        outcome = party.conclude(
            last.journal,
            last.answered.after,
            result,
            data,
            acknowledged=self.folder.ledger.has_receipt(last.answered.place),
        )
        member = self._identity.member
        if member is not None and len(outcome.labels) != member.n_rows:
            raise InvalidArray(f"{len(outcome.labels)} labels, {member.n_rows} rows.")
        admitted = self._admitted_rows
        return outcome if admitted is None else admitted.put_back(outcome)

    @property
    def _admitted_rows(self) -> AdmittedRows | None:
        """Return which rows of the table the session sees; None for all, as they are.

        By these labels go back to the rows without the table.
        """
        stored = self.folder.load(Document.ADMITTED_ROWS)
        return None if stored is None else AdmittedRows.decode(stored)

    def foresee(self) -> list[Outcome | None]:
        """Return what this party knows of each run by itself, in the order of its table.

        None of a run that is not done, or whose labels come with the result.
        """
        party = self._engine(self.folder.agreement or b"")
        last = self.folder.load_state()
        admitted = self._admitted_rows
        return [
            each if each is None or admitted is None else admitted.put_back(each)
            for each in party.foresee(last.journal, last.answered.after)
        ]

    def _engine(self, agreement: bytes) -> engine.PartyEngine:
        return engine.PartyEngine(
            agreement=agreement,
            slot=self.invitation.slot,
            entropy=self._entropy,
            choices={**self._choices, SUMS_LIMIT: self._sums_limit},
            engine=LocalEngine(os.cpu_count() or 1),
        )

    @property
    def _sums_limit(self) -> float:
        """Return the share of rows that may follow: as chosen, or as the policy says."""
        limit: float = self._choices.get(SUMS_LIMIT, self._policy.sums_limit)
        return limit

    @property
    def _entropy(self) -> bytes:
        return bytes.fromhex(self._identity.entropy)
