"""Records: the header and named arrays of everything that is sent or stored."""
