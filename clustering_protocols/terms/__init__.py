"""The documents on which parties agree: terms, roster, risks, and signed logs."""
