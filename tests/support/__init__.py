"""What several tests use: no tests, no fixtures."""
