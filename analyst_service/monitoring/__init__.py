"""What an operator sees of the service: logs, figures, checks, certificates."""
