"""Results of a party: labels of its rows, pictures and files."""
