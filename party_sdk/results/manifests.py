"""Manifests: the facts with which readers of a paper can repeat a session.

A manifest contains terms, seeds, digests and versions, and for a simulation also the
digest of each party's table. For a session between institutions, it contains no row, no
cell, and no count of a single party.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.canonical import canonical_json, digest
from clustering_protocols.terms.terms import Terms
from coterie.build import read_build

LIBRARIES: Final = ("numpy", "scikit-learn", "scipy")
"""The libraries whose version may affect the last digits of a result."""


def describe_session(terms: Terms, agreement: str) -> dict[str, Any]:
    """Return the terms, the public seed, digests and versions, as JSON values.

    agreement: the SHA-256 of the agreement (hex); empty until all parties have joined.
    """
    text = canonical_json(terms)
    return {
        "session": terms.session,
        "public_seed": terms.seed,
        "terms": json.loads(text),
        "terms_sha256": digest(text),
        "agreement_sha256": agreement,
        "versions": {
            **_installed_versions(),
            "protocol": {terms.protocol.name: terms.protocol.version},
            "terms": terms.coterie,
        },
    }


def describe_table(source: DataSource) -> dict[str, Any]:
    """Return the columns, the number of rows and the digest of a table's values."""
    return {
        "columns": list(source.columns),
        "rows": source.n_rows,
        "sha256": digest_matrix(matrix(source)),
    }


def digest_matrix(X: FloatArray | IntArray) -> str:
    """Return the SHA-256 (hex) of the shape and the values of an array, row by row.

    X: float64 (n, m) or int64 (n,). Values are hashed as little-endian 64-bit words,
        after the shape as ``n,m:``. All missing values count as equal.
    """
    kind = "<f8" if X.dtype.kind == "f" else "<i8"
    words = np.ascontiguousarray(X, dtype=kind)
    if kind == "<f8" and np.isnan(words).any():
        words = np.where(np.isnan(words), np.nan, words)
    hasher = sha256(",".join(map(str, X.shape)).encode() + b":")
    hasher.update(words.tobytes())
    return hasher.hexdigest()


@cache
def _installed_versions() -> Mapping[str, str | None]:
    """Return the versions in this process; cached, because git may look up the commit."""
    build = read_build()
    return {
        "coterie": build.version,
        "commit": build.commit,
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }
