"""How files are written: encodings, dialects, titles, kinds of columns, places of rows."""
