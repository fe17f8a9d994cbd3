"""Words for common levels and column names in six languages.

The languages are English, German, French, Spanish, Italian and Dutch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from itertools import product
from typing import Final

_LEVELS: Final = {
    "yes": "yes y true | ja j wahr | oui o vrai | si sí s | si sì s | ja j",
    "no": "no n false | nein n falsch | non n faux | no n | no n | nee n",
    "female": "female f woman women | weiblich w frau | femme feminin féminin | mujer "
    "femenino femenina | donna femmina | vrouw vrouwelijk",
    "male": "male m man men | männlich mann | homme masculin | hombre masculino varón "
    "| uomo maschio maschile | man mannelijk",
    "never": "never non-smoker nonsmoker | nie niemals nichtraucher | jamais | nunca | mai "
    "| nooit",
    "former": "former ex ex-smoker exsmoker | früher ehemals ehemalig exraucher | ancien "
    "anciennement | antiguo exfumador | passato | vroeger voormalig",
    "current": "current smoker now | aktuell raucher derzeit | actuel actuellement fumeur "
    "| actual fumador | attuale fumatore | huidig roker",
    "alive": "alive living | lebend lebt | vivant | vivo | vivo | levend",
    "dead": "dead died deceased | tot verstorben | décédé mort | muerto fallecido "
    "| deceduto morto | overleden",
}
_LEVEL_WORDS: Final = [
    dict(zip(_LEVELS, words, strict=True))
    for words in zip(
        *(translations.split("|") for translations in _LEVELS.values()), strict=True
    )
]
"""For each language, the words that mean each level."""
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
    """Reduce a text to its letters and digits, in lower case and without accents."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[\W_]+", "", plain)


def fold_words(text: str) -> frozenset[str]:
    """Split a text into words, also at camel case, and fold each of them."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return frozenset(filter(None, map(fold, re.split(r"[\s_.,;:()/-]+", spaced))))


def _index(table: dict[str, str]) -> dict[str, str]:
    return {fold(word): name for name, words in table.items() for word in words.split()}


_LEVEL_BY_WORD: Final = {
    word: name for levels in _LEVEL_WORDS for word, name in _index(levels).items()
}
_COLUMN_BY_WORD: Final = _index(_COLUMNS)


def meaning_of_level(text: str) -> str | None:
    """Return what a level means in any language, such as ``female``; None if unknown."""
    return _LEVEL_BY_WORD.get(fold(text))


def interpret_initials(
    letters: Collection[str], meanings: Collection[str]
) -> dict[str, set[str]]:
    """Interpret letters as initials of the words for ``meanings`` in one language.

    Letters depend on each other: next to H for hombre, M means mujer, not man. Among
    all languages, only the readings that explain the most letters are returned.

    letters: letters in the form that :func:`fold` returns.
    """
    readings, n_explained = dict[str, set[str]](), 0
    for levels in _LEVEL_WORDS:
        candidates = {
            letter: [
                meaning
                for meaning, words in levels.items()
                if meaning in meanings
                and any(fold(word).startswith(letter) for word in words.split())
            ]
            for letter in letters
        }
        for choice in product(*([None, *candidates[letter]] for letter in letters)):
            assignment = [meaning for meaning in choice if meaning is not None]
            if len(set(assignment)) < len(assignment) or len(assignment) < max(
                n_explained, 1
            ):
                continue
            if len(assignment) > n_explained:
                readings, n_explained = {}, len(assignment)
            for letter, meaning in zip(letters, choice, strict=True):
                if meaning is not None:
                    readings.setdefault(letter, set()).add(meaning)
    return readings


def meanings_of_column(text: str) -> frozenset[str]:
    """Return what the words in a column's name mean, such as ``age`` or ``weight``."""
    words = {fold(text), *fold_words(text)}
    return frozenset(_COLUMN_BY_WORD[word] for word in words if word in _COLUMN_BY_WORD)
