"""Reports that people read, print and sign."""
