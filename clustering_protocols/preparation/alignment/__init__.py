"""Who holds the same rows: ids, digests of them, intersections, and the order they travel in."""
