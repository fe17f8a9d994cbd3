"""One module for each kind of table: text, sheets, study files, typed columns, queries."""
