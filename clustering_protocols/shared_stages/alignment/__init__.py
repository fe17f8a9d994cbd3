"""Who holds the same rows: ids, digests, intersections, and the order they travel in."""
