"""What every other folder may use: errors, the catalogue of problems, limits, values."""
