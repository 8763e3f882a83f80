"""Files and folders that are replaced whole or not at all."""
