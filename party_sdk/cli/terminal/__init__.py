"""Output and questions of commands: lines, tables, pages and progress."""
