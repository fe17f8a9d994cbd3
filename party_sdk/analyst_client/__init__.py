"""The client of the analyst service: requests, retries, diagnosis."""
