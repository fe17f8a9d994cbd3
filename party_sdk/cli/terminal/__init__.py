"""What commands print and ask: lines, tables, pages, progress, questions."""
