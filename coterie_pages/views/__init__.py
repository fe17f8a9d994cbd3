"""From what sessions and protocols know to the models of pages."""
