"""What parties agree on: terms, roster, risks, and signed evidence of them."""
