"""Attacks on what `dc` uploads, by an analyst who keeps everything."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from clustering_protocols import packets, simulation
from clustering_protocols.data import matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dc.messages import Projections

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Upload:
    """A party's real upload, and the rows behind it in the order of the upload."""

    rows: Matrix
    anchors: Matrix
    truth: Matrix


def uploads(
    params: DataCollaboration, parts: simulation.Split, seed: int
) -> dict[str, Upload]:
    """Return what each party uploaded in a simulated session."""
    run = simulation.run(params, parts.layout, parts.data, seed)
    found: dict[str, Upload] = {}
    for sent in run.sent:
        packet = packets.read(sent.payload)
        record: dict[str, Any] = packet.header.record
        if record["kind"] == Projections.kind:
            order = run.orders[sent.sender]
            truth = matrix(parts.data[sent.sender])[order]
            found[sent.sender] = Upload(
                packet.arrays["rows"], packet.arrays["anchors"], truth
            )
    return found


def unmixed(upload: Upload, seed: int) -> Matrix:
    """Return the rows after a blind source separation of the anchor projections alone."""
    ica = FastICA(
        upload.anchors.shape[1],
        whiten="unit-variance",
        fun="cube",
        max_iter=200,  # of Gaussian mixtures it never converges
        random_state=seed,
    )
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica.fit(upload.anchors)
    separated: Matrix = ica.transform(upload.rows)
    return separated


def turned_back(upload: Upload) -> Matrix:
    """Return the rows along the eigenvectors of the anchor projections' covariance.

    Anchors whose features have spreads of their own show the features' directions.
    """
    _, axes = np.linalg.eigh(np.cov(upload.anchors, rowvar=False))
    found: Matrix = upload.rows @ axes
    return found


def principal(upload: Upload) -> Matrix:
    """Return the principal components of the uploaded rows: known without anchors."""
    _, axes = np.linalg.eigh(np.cov(upload.rows, rowvar=False))
    found: Matrix = upload.rows @ axes
    return found


def mixed(upload: Upload, seed: int) -> Matrix:
    """Return the uploaded rows mixed at random: what a guess without an attack has."""
    width = upload.rows.shape[1]
    mixture: Matrix = upload.rows @ np.random.default_rng(seed).normal(
        size=(width, width)
    )
    return mixture


def correlations(guess: Matrix, truth: Matrix) -> Matrix:
    """Return, for each feature, the largest absolute correlation with a guess."""
    varies = truth.std(axis=0) > 0
    both = np.corrcoef(guess.T, truth[:, varies].T)
    best: Matrix = np.abs(both[: guess.shape[1], guess.shape[1] :]).max(axis=0)
    return best
