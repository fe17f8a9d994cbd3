"""Commands that try things out on one machine: compare, example, simulate and try."""
