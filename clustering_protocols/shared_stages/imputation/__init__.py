"""What takes the place of missing values: pooled, of all rows of a column group."""
