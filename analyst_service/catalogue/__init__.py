"""The catalogue of protocols."""
