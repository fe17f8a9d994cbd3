"""What an analyst with one colluding party of the column group could rebuild.

A colluder hands over the anchors. The analyst then holds input and output of f_ij,
regresses one on the other and applies it to the reduced rows: the known-anchor attack.
The party runs the same attack on its own upload before it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clustering_protocols.records.arrays import FloatArray

_CLOSE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """How well rows come out.

    largest_r2, median_r2: share of a feature's variance that is rebuilt, over the
        features that vary.
    close_rows: share of rows whose distance from the truth is at most a tenth of their
        distance from the mean, in standardised units.
    close_values: share of rows whose value of one feature is within a tenth of that
        feature's spread, for the feature of which most are.
    """

    largest_r2: float
    median_r2: float
    close_rows: float
    close_values: float

    @property
    def worst(self) -> float:
        """Return the larger share: a single feature may be what must not come out."""
        return max(self.close_rows, self.close_values)

    @property
    def sentence(self) -> str:
        """Return the shares in words."""
        return (
            f"{self.close_rows:.1%} of your rows within 10 %, and one feature of "
            f"{self.close_values:.1%}"
        )

    def notes(self) -> dict[str, Any]:
        """Return the numbers in the words in which the operator reads them."""
        return {
            "self-check": "what an analyst with one party of your column group rebuilds",
            "  features, largest R²": self.largest_r2,
            "  features, median R²": self.median_r2,
            "  rows within 10 %, share": self.close_rows,
            "  best feature within 10 %, share": self.close_values,
        }


def rebuild(anchors: FloatArray, images: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the attack's guess (n, m) of rows from their images (n, width).

    anchors: float64 (r, m).
    images: float64 (r, width); of the anchors, under the private map.
    rows: float64 (n, width); images of the rows.
    """
    center, middle = images.mean(axis=0), anchors.mean(axis=0)
    B = np.linalg.lstsq(images - center, anchors - middle, rcond=None)[0]
    guess: FloatArray = middle + (rows - center) @ B
    return guess


def score(X: FloatArray, guess: FloatArray) -> Rebuilt:
    """Return how well a guess (n, m) meets the rows X (n, m)."""
    spread = X.std(axis=0)
    varies = spread > 0
    Z = (X - X.mean(axis=0))[:, varies] / spread[varies]
    error = (guess - X)[:, varies] / spread[varies]
    r2 = 1.0 - np.mean(np.square(error), axis=0)
    close = np.linalg.norm(error, axis=1) <= _CLOSE * np.linalg.norm(Z, axis=1)
    return Rebuilt(
        largest_r2=float(r2.max(initial=0.0)),
        median_r2=float(np.median(r2)) if r2.size else 0.0,
        close_rows=float(np.mean(close)),
        close_values=float((np.abs(error) <= _CLOSE).mean(axis=0).max(initial=0.0)),
    )
