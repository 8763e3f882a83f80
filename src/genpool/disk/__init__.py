"""Files and folders: read line by line, replaced completely or not at all."""
