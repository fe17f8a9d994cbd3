"""The client of the analyst service: requests, retries, and connection diagnosis."""
