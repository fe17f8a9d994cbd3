"""The session of most tests of the service: two parties with twenty rows each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.terms.terms import Layout

if TYPE_CHECKING:
    from support.in_process import Api

StartApi = Callable[..., "AbstractContextManager[Api]"]

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)
A, B = LAYOUT.names
