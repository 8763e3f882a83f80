"""Whole files and tables: encode a file, predict and evaluate a table."""
