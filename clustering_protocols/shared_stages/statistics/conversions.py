"""Units in which hospitals give the same quantity, and what turns one into the other.

Molar masses give the factors between mg/dl and mmol/l. HbA1c: the master equation of
Hoelzel et al., "IFCC reference system for measurement of hemoglobin A1c in human blood",
Clinical Chemistry 50, 2004.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_SHORT: Final = 3  # letters of a stem that has to be a whole word


@dataclass(frozen=True, slots=True)
class Conversion:
    """Two units of a quantity: ``second = factor * first + offset``.

    quantity: empty of units that measure many things.
    stems: what the name of a column of the quantity holds, in lower case.
    """

    quantity: str
    first: str
    second: str
    factor: float
    offset: float = 0.0
    stems: tuple[str, ...] = ()

    @property
    def inverse(self) -> Conversion:
        """Return the same units the other way round."""
        return Conversion(
            self.quantity,
            self.second,
            self.first,
            1.0 / self.factor,
            -self.offset / self.factor,
            self.stems,
        )

    @property
    def name(self) -> str:
        """Return what people call it in a file: ``HbA1c, % to mmol/mol``."""
        return f"{self.quantity}, {self.first} to {self.second}"

    @property
    def formula(self) -> str:
        """Return what to do with a value of the first unit, for people."""
        sign = "+" if self.offset > 0 else "-"
        added = f" {sign} {abs(self.offset):.4g}" if self.offset else ""
        return f"× {self.factor:.4g}{added}"

    def is_named(self, text: str) -> bool:
        """Return whether a column's name or title speaks of the quantity."""
        folded = text.casefold()
        words = set(re.split(r"[\W_]+", folded))
        return any(
            stem in words if len(stem) <= _SHORT else stem in folded
            for stem in self.stems
        )


_PAIRS: Final = (
    Conversion("HbA1c", "%", "mmol/mol", 10.929, -23.5, ("hba1c", "a1c", "hb_a1c")),
    Conversion("glucose", "mmol/l", "mg/dl", 18.016, 0.0, ("gluc", "gluk", "glyc")),
    Conversion("creatinine", "mg/dl", "µmol/l", 88.42, 0.0, ("creat", "kreat", "crea")),
    Conversion("cholesterol", "mmol/l", "mg/dl", 38.67, 0.0, ("chol", "hdl", "ldl")),
    Conversion("triglycerides", "mmol/l", "mg/dl", 88.57, 0.0, ("trig", "tg")),
    Conversion("bilirubin", "mg/dl", "µmol/l", 17.1, 0.0, ("bili",)),
    Conversion("urea", "mmol/l", "mg/dl", 6.006, 0.0, ("urea", "harnstoff")),
    Conversion("urea nitrogen", "mmol/l", "mg/dl", 2.801, 0.0, ("bun", "urea")),
    Conversion("uric acid", "mg/dl", "µmol/l", 59.48, 0.0, ("uric", "urat", "harns")),
    Conversion("calcium", "mmol/l", "mg/dl", 4.008, 0.0, ("calc", "kalz", "ca")),
    Conversion("phosphate", "mmol/l", "mg/dl", 3.097, 0.0, ("phos",)),
    Conversion("magnesium", "mmol/l", "mg/dl", 2.431, 0.0, ("magnes", "mg")),
    Conversion("haemoglobin", "mmol/l", "g/dl", 1.611, 0.0, ("haemog", "hemog", "hb")),
    Conversion("C-peptide", "nmol/l", "ng/ml", 3.02, 0.0, ("pept", "cpep")),
    Conversion("insulin", "µU/ml", "pmol/l", 6.0, 0.0, ("insulin",)),
    Conversion("vitamin D", "ng/ml", "nmol/l", 2.496, 0.0, ("vitamin_d", "vitd", "25oh")),
    Conversion("temperature", "°C", "°F", 1.8, 32.0, ("temp", "fever", "fieber")),
    Conversion("weight", "kg", "pounds", 2.2046, 0.0, ("weight", "gewicht", "mass", "wt")),
    Conversion("length", "inches", "cm", 2.54, 0.0, ("height", "length", "waist", "size")),
    Conversion("length", "feet", "m", 0.3048, 0.0, ("height", "length")),
    Conversion("length", "feet", "cm", 30.48, 0.0, ("height", "length")),
    Conversion("pressure", "kPa", "mmHg", 7.5006, 0.0, ("press", "pco2", "po2", "sbp", "dbp", "bp")),
    Conversion("time", "years", "months", 12.0, 0.0, ("age", "alter", "duration", "time")),
    Conversion("time", "years", "days", 365.25, 0.0, ("age", "alter", "duration", "time")),
    Conversion("time", "hours", "minutes", 60.0, 0.0, ("duration", "time", "dauer")),
    Conversion("", "one unit", "its tenth", 10.0),
    Conversion("", "one unit", "its hundredth", 100.0),
    Conversion("", "one unit", "its thousandth", 1e3),
    Conversion("", "one unit", "its millionth", 1e6),
)  # fmt: skip

CONVERSIONS: Final[Sequence[Conversion]] = tuple(
    each for pair in _PAIRS for each in (pair, pair.inverse)
)
"""Every pair of units, in both directions."""


def find_conversion(name: str) -> Conversion | None:
    """Return the conversion of a name, whatever its case; None if there is none."""
    wanted = " ".join(name.casefold().split())
    known = (each for each in CONVERSIONS if each.quantity)
    return next((each for each in known if each.name.casefold() == wanted), None)
