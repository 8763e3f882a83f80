"""What exists only to repeat the paper: the encoders it compares with, the readers of two of its
data sets, a generated corpus, its tables and figures.

Importing it registers the encoders and readers, so that settings and saved folders can name them:

>>> import genpool.reproduction
>>> genpool.encoder.ENCODERS["disan"]

A recipe names it as `plugins = ["genpool.reproduction"]`, a command as
`--plugin genpool.reproduction`.
"""

from genpool.reproduction import encoders, readers, rules

__all__ = ["encoders", "readers", "rules"]
