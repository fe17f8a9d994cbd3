"""What parties agree on: the terms, who takes part, and what can be proved of it."""
