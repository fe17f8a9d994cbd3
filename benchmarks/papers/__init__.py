"""The experiments of the protocols' papers, run again."""
