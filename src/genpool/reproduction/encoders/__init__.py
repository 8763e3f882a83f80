"""The sentence encoders that the paper's Table 1 compares with, beyond the BiLSTMs of the core.

Importing this package registers them, as a user's own encoder is registered.
"""

from genpool.encoder import register
from genpool.reproduction.encoders.cafe import CAFEEncoder
from genpool.reproduction.encoders.disan import DiSANEncoder
from genpool.reproduction.encoders.gumbel_tree import GumbelTreeEncoder
from genpool.reproduction.encoders.nse import NSEEncoder
from genpool.reproduction.encoders.nti import NTIEncoder
from genpool.reproduction.encoders.resan import ReSANEncoder
from genpool.reproduction.encoders.spinn import SPINNEncoder
from genpool.reproduction.encoders.tree_cnn import TreeCNNEncoder

register("disan", DiSANEncoder)
register("nse", NSEEncoder)
register("cafe", CAFEEncoder)
register("resan", ReSANEncoder)
register("spinn", SPINNEncoder)
register("tree-cnn", TreeCNNEncoder)
register("nti", NTIEncoder)
register("gumbel-tree", GumbelTreeEncoder)

__all__ = [
    "CAFEEncoder",
    "DiSANEncoder",
    "GumbelTreeEncoder",
    "NSEEncoder",
    "NTIEncoder",
    "ReSANEncoder",
    "SPINNEncoder",
    "TreeCNNEncoder",
]
