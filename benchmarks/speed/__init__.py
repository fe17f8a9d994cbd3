"""How long things take, as ratios where machines differ."""
