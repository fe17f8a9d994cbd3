"""Sessions of many parties, and many sessions, in the memory of one process."""

import gc
import weakref

import numpy as np

from clustering_protocols import engine, simulation
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import SESSIONS_IN_MEMORY, Layout, Slot

TABLE = MatrixSource(np.eye(12))
PARAMS = Dummy(n_clusters=2)


def test_only_few_sessions_stay_in_memory() -> None:
    """Terms of thousands of columns take megabytes."""
    layout, terms = Layout.lattice(2), []
    data = dict.fromkeys(layout.names, TABLE)
    for number in range(SESSIONS_IN_MEMORY + 10):
        agreement = simulation.build_agreement(
            PARAMS, layout, data, 1, session=f"s{number}"
        )
        terms.append(weakref.ref(engine.load_session(agreement)[0].terms))
    gc.collect()
    assert sum(each() is not None for each in terms) <= SESSIONS_IN_MEMORY + 1


def test_a_session_of_many_parties_with_long_names_begins() -> None:
    places = [(row, column) for row in range(31) for column in range(32)]
    slots = (Slot(name=f"{r}-{c}".ljust(63, "x"), row=r, column=c) for r, c in places)
    layout = Layout(slots=tuple(slots))
    data = dict.fromkeys(layout.names, TABLE)
    session = simulation.Session(PARAMS, layout, data, 1)
    assert session.open.tasks.keys() == data.keys()
