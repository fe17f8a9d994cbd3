"""What a party gets: labels beside its own rows, pictures and files of them."""
