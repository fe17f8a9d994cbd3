"""Columns that name people: what each holds, by the words of its name.

English, German, French, Spanish, Italian and Dutch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from party_sdk.tables.words import fold, fold_words

_ROLES: Final = {
    "number": "ssn socsecid socialsecuritynumber insurancenumber insuranceno kvnr "
    "versichertennummer versicherungsnummer nhsnumber nir ahv ahvnr bsn codicefiscale dni",
    "given": "given givenname firstname first forename vorname prénom prenom nombre nome "
    "voornaam",
    "surname": "surname lastname last familyname family nachname familienname nom apellido "
    "apellidos cognome achternaam",
    "birth": "birthdate dateofbirth dob birth birthday geburtsdatum gebdatum geboren "
    "datenaissance datedenaissance naissance fechanacimiento fechadenacimiento nacimiento "
    "datadinascita nascita geboortedatum",
    "sex": "sex gender geschlecht sexe genre sexo género sesso genere geslacht",
    "postcode": "postcode postalcode zip zipcode plz postleitzahl codepostal codigopostal "
    "cap",
    "city": "city town suburb place ort stadt wohnort ville ciudad città citta stad "
    "woonplaats",
    "house": "streetnumber housenumber houseno hausnummer hausnr",
    "street": "street address address1 streetname strasse straße anschrift adresse rue "
    "calle dirección via indirizzo straat",
    "phone": "phone telephone mobile telefon handy téléphone teléfono telefono telefoon",
    "mail": "mail email emailaddress",
}
_OF_NAMES: Final = {
    fold(word): role for role, words in _ROLES.items() for word in words.split()
}


def person_columns(names: Iterable[str]) -> dict[str, str]:
    """Return which column holds each role, such as ``surname``.

    A whole name counts before a word of one, and the first column where two fit.
    """
    given = list(names)
    whole = {n: role for n in given if (role := _OF_NAMES.get(fold(n))) is not None}
    found = {role: name for name, role in reversed(whole.items())}
    for name in given:
        roles = {_OF_NAMES[word] for word in fold_words(name) if word in _OF_NAMES}
        if name not in whole and len(roles) == 1:
            found.setdefault(roles.pop(), name)
    return found
