"""What the clusters are like, field by field: sums over all who hold the same fields."""
