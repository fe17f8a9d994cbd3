"""`coterie party …`: commands of a party's operator."""
