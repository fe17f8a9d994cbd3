"""Match keys tried on made people, of whom it is known who is who."""

from party_sdk.tables.linkage_trials.linkage_trial import LinkageTrial, try_match_keys
from party_sdk.tables.linkage_trials.made_people import (
    COLUMNS,
    Cells,
    MadeHospital,
    make_hospitals,
    make_register,
)

__all__ = [
    "COLUMNS",
    "Cells",
    "LinkageTrial",
    "MadeHospital",
    "make_hospitals",
    "make_register",
    "try_match_keys",
]
