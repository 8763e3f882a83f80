"""Other people's libraries: each integration depends on the core, never the reverse."""
