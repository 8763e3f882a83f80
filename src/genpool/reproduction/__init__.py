"""What exists only to repeat the paper: the encoders it compares with, its tables and figures.

Importing it registers the encoders, so that settings and saved folders can name them:

>>> import genpool.reproduction
>>> genpool.encoder.ENCODERS["disan"]

A recipe names it as `plugins = ["genpool.reproduction"]`, a command as
`--plugin genpool.reproduction`.
"""

from genpool.reproduction import encoders

__all__ = ["encoders"]
