"""Tables at the desk: looked at, mended and kept, before any session and in one."""
