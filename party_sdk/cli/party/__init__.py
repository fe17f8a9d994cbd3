"""`coterie party …`: the commands of a party's operator."""
