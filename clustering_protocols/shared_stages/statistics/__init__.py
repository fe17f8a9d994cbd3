"""What parties find out of all rows of a column group: means, spreads, ranges."""
