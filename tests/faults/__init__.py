"""A file system that fails, and processes that are killed, at every operation of every command that writes."""
