"""Words that tables have for the same thing, in six languages.

English, German, French, Spanish, Italian and Dutch.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_LEVELS: Final = {
    "yes": "yes y ja j oui o si sí s true wahr vrai",
    "no": "no n nein non nee false falsch faux",
    "female": "female f w woman women weiblich frau femme feminin féminin mujer femenino "
    "femenina donna femmina vrouw vrouwelijk",
    "male": "male m man men männlich mann homme masculin hombre masculino varón uomo "
    "maschio maschile mannelijk",
    "never": "never nie niemals nichtraucher non-smoker nonsmoker jamais nunca mai nooit",
    "former": "former ex ex-smoker exsmoker früher ehemals ehemalig exraucher ancien "
    "anciennement antiguo exfumador passato vroeger voormalig",
    "current": "current smoker now aktuell raucher derzeit actuel actuellement fumeur "
    "actual fumador attuale fumatore huidig roker",
    "alive": "alive living lebend lebt vivant vivo levend",
    "dead": "dead died deceased tot verstorben décédé mort muerto fallecido deceduto "
    "morto overleden",
}
_COLUMNS: Final = {
    "sex": "sex gender geschlecht sexe genre sexo género sesso genere geslacht",
    "age": "age alter âge edad età leeftijd",
    "smoking": "smoking smoke smoker rauchen raucher raucherstatus tabac tabagisme "
    "tabaco fumo roken",
    "diagnosis": "diagnosis dx erstdiagnose diagnose diagnostic diagnóstico diagnosi",
    "died": "died death dead verstorben tod décès muerte decesso overleden",
    "weight": "weight gewicht poids peso",
    "height": "height größe groesse taille talla altezza lengte",
    "systolic": "systolic sbp rrsys systolisch systolique sistólica sistolica",
    "diastolic": "diastolic dbp rrdia diastolisch diastolique diastólica diastolica",
    "insulin": "insulin insuline insulina",
    "date": "date datum fecha data",
}


def fold(text: str) -> str:
    """Return letters and digits of a text without case, accents and separators."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[\W_]+", "", plain)


def fold_words(text: str) -> frozenset[str]:
    """Return the words of a text, each folded."""
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return frozenset(filter(None, map(fold, re.split(r"[\s_.,;:()/-]+", split))))


def _index(table: dict[str, str]) -> dict[str, str]:
    return {fold(word): name for name, words in table.items() for word in words.split()}


_OF_LEVELS: Final = _index(_LEVELS)
_OF_COLUMNS: Final = _index(_COLUMNS)


def meaning_of_level(text: str) -> str | None:
    """Return what a level means, such as ``female``; None where no language has it."""
    return _OF_LEVELS.get(fold(text))


def meanings_of_column(text: str) -> frozenset[str]:
    """Return what the words of a column's name speak of."""
    words = {fold(text), *fold_words(text)}
    return frozenset(_OF_COLUMNS[word] for word in words if word in _OF_COLUMNS)
