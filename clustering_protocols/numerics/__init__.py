"""Numbers in blocks: compiled kernels, sources of rows, scores and quality measures."""
