"""Attacks by an analyst who keeps everything, and how noise is told from numbers."""

import warnings
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from clustering_protocols import simulation
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dc.messages import Projections

Matrix = NDArray[np.float64]


def sent_packets(
    session: simulation.Session, kind: str, slot: str | None = None
) -> list[packets.Packet]:
    """Return the packets of a kind that all parties, or one of them, sent, in order."""
    found = [
        packets.parse(message.payload)
        for message in session.received_messages
        if slot in {None, message.sender}
    ]
    return [packet for packet in found if packet.header.record["kind"] == kind]


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
        packet = packets.parse(sent.payload)
        record: dict[str, Any] = packet.header.record
        if record["kind"] == Projections.kind:
            order = run.orders[sent.sender]
            truth = matrix(parts.data[sent.sender])[order]
            found[sent.sender] = Upload(
                packet.arrays["rows"], packet.arrays["anchors"], truth
            )
    return found


def unmix(upload: Upload, seed: int) -> Matrix:
    """Return the rows after a blind source separation of the anchor projections alone."""
    ica = FastICA(
        upload.anchors.shape[1],
        whiten="unit-variance",
        fun="cube",
        max_iter=200,  # on Gaussian mixtures it never converges
        random_state=seed,
    )
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica.fit(upload.anchors)
    separated: Matrix = ica.transform(upload.rows)
    return separated


def rotate_back(upload: Upload) -> Matrix:
    """Return the rows along the eigenvectors of the anchor projections' covariance.

    Anchors whose features differ in spread show the features' directions.
    """
    _, axes = np.linalg.eigh(np.cov(upload.anchors, rowvar=False))
    found: Matrix = upload.rows @ axes
    return found


def principal(upload: Upload) -> Matrix:
    """Return the principal components of the uploaded rows, which need no anchors."""
    _, axes = np.linalg.eigh(np.cov(upload.rows, rowvar=False))
    found: Matrix = upload.rows @ axes
    return found


def mix(upload: Upload, seed: int) -> Matrix:
    """Return a random mixture of the uploaded rows: a guess without an attack."""
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


# Sums over rounds


def single_movers(totals: NDArray[np.uint64], k: int, unit: Matrix) -> Matrix:
    """Return the rows (r, F) that moved alone from one cluster to another.

    totals: uint64 (rounds, k * F + k); ring elements, as the analyst adds them up:
        sums, then counts.
    unit: float64 (F,).
    """
    found = [np.empty((0, unit.size))]
    for before, after in pairwise(totals):
        step = (after - before).view(np.int64)
        counts = step[-k:]
        if np.abs(counts).sum() == 2 and np.abs(counts).max() == 1:
            sums = step[:-k].reshape(k, -1)
            found.append(sums[counts == 1] / unit)
    return np.vstack(found)


# Distances over rounds


def rigid(L: Matrix, width: int) -> Matrix:
    """Return rows (n, width) whose pairwise distances are those of the data.

    L: float64 (n, rounds * k); squared distances to centroids that lie among the rows.
    """
    P = affine(L, width)
    upper = np.triu_indices(width)
    products = [
        P[:, i] * P[:, j] * (1 if i == j else 2) for i, j in zip(*upper, strict=True)
    ]
    design = np.hstack([np.stack(products, 1), P, np.ones((len(P), 1))])
    solved = np.linalg.lstsq(design, L.mean(axis=1), rcond=None)[0]
    Q = np.zeros((width, width))
    Q[upper] = solved[: len(upper[0])]
    Q = Q + Q.T - np.diag(np.diag(Q))
    w, V = np.linalg.eigh(Q)
    found: Matrix = P @ V * np.sqrt(np.maximum(w, 0))
    return found


def affine(L: Matrix, width: int) -> Matrix:
    """Return an affine image (n, width) of the data, from differences of distances."""
    Y = L - L.mean(axis=1, keepdims=True)
    Y = Y - Y.mean(axis=0)
    U, s, _ = np.linalg.svd(Y, full_matrices=False)
    image: Matrix = U[:, :width] * s[:width]
    return image


def from_differences(differences: Matrix, width: int) -> Matrix:
    """Return rows (n, width) whose pairwise distances are those of the data.

    No distance is needed: the slopes of the differences along an affine image P of the
    data are -2 G (v_c - v_0), and the analyst, who knows who is in which cluster, knows
    the centroids in P as well. G = A A' for the map A that makes rows of P.

    differences: float64 (rounds, n, k); squared distances less that to the first
        centroid, of c-means.
    """
    P = affine(np.hstack(list(differences)), width)
    design = np.hstack([P, np.ones((len(P), 1))])
    equations, slopes = [], []
    for before, after in pairwise(differences):
        labels = before.argmin(axis=1)
        V = np.array([P[labels == c].mean(axis=0) for c in range(before.shape[1])])
        solved = np.linalg.lstsq(design, after, rcond=None)[0][:width]
        for c in range(1, len(V)):
            equations.append(np.kron(np.eye(width), V[c] - V[0]))
            slopes.append(solved[:, c] / -2)
    found = np.linalg.lstsq(np.vstack(equations), np.concatenate(slopes), rcond=None)
    G = found[0].reshape(width, width)
    w, axes = np.linalg.eigh((G + G.T) / 2)
    rows: Matrix = P @ axes * np.sqrt(np.maximum(w, 0))
    return rows


def with_known_rows(image: Matrix, X: Matrix, known: NDArray[np.int64]) -> Matrix:
    """Return all rows, from an affine image of them and some that are known."""
    A = np.hstack([image, np.ones((len(image), 1))])
    found: Matrix = A @ np.linalg.lstsq(A[known], X[known], rcond=None)[0]
    return found


# Noise


def looks_like_noise(words: NDArray[np.uint64]) -> None:
    """Assert the statistics of threat test 75; bounds of four sigma for fewer bytes."""
    raw = words.tobytes()
    octets = np.frombuffer(raw, np.uint8)
    assert octets.size >= 20_000, "too few bytes to tell"
    expected = octets.size / 256
    counts = np.bincount(octets, minlength=256)
    chi2 = float(np.square(counts - expected).sum() / expected)
    assert 0.64 <= chi2 / 255 <= 1.36
    x = octets.astype(np.float64)
    bound = max(0.01, 4 / np.sqrt(octets.size))
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < bound
    assert len(zlib.compress(raw, 6)) / len(raw) > 0.999
