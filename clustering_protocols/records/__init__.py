"""Records: everything that is sent or kept, as a header and named arrays in bytes."""
