"""Token vectors and a mask in, one state per token out.

>>> from genpool.encoder import ENCODERS
>>> encoder = ENCODERS["stacked-bilstm"](300, hidden_dim=300, layers=3)
>>> states, gates = encoder(vectors, mask)     # vectors (batch, time, 300)
"""

from genpool import registry
from genpool.encoder.bag import BagOfWordsEncoder
from genpool.encoder.base import Encoded, Encoder
from genpool.encoder.bilstm import (
    BiLSTMEncoder,
    ResidualStackedEncoder,
    ShortcutStackedEncoder,
    StackedBiLSTMEncoder,
)
from genpool.encoder.cafe import CAFEEncoder
from genpool.encoder.cnn import CNNEncoder
from genpool.encoder.disan import DiSANEncoder
from genpool.encoder.gumbel_tree import GumbelTreeEncoder
from genpool.encoder.nse import NSEEncoder
from genpool.encoder.nti import NTIEncoder
from genpool.encoder.one_way import GRUEncoder, LSTMEncoder
from genpool.encoder.resan import ReSANEncoder
from genpool.encoder.spinn import SPINNEncoder
from genpool.encoder.tree_cnn import TreeCNNEncoder

_CLASSES: dict[str, type[Encoder]] = {
    "stacked-bilstm": StackedBiLSTMEncoder,
    "bilstm": BiLSTMEncoder,
    "shortcut-stacked": ShortcutStackedEncoder,
    "residual-stacked": ResidualStackedEncoder,
    "lstm": LSTMEncoder,
    "gru": GRUEncoder,
    "cnn": CNNEncoder,
    "disan": DiSANEncoder,
    "bag-of-words": BagOfWordsEncoder,
    "nse": NSEEncoder,
    "cafe": CAFEEncoder,
    "resan": ReSANEncoder,
    "spinn": SPINNEncoder,
    "tree-cnn": TreeCNNEncoder,
    "nti": NTIEncoder,
    "gumbel-tree": GumbelTreeEncoder,
}
#: every encoder by its name in settings and saved folders
ENCODERS: registry.Registry[Encoder] = registry.Registry("encoder", Encoder, _CLASSES)
register = ENCODERS.register

__all__ = [
    "ENCODERS",
    "BagOfWordsEncoder",
    "BiLSTMEncoder",
    "CAFEEncoder",
    "CNNEncoder",
    "DiSANEncoder",
    "Encoded",
    "Encoder",
    "GRUEncoder",
    "GumbelTreeEncoder",
    "LSTMEncoder",
    "NSEEncoder",
    "NTIEncoder",
    "ReSANEncoder",
    "ResidualStackedEncoder",
    "SPINNEncoder",
    "ShortcutStackedEncoder",
    "StackedBiLSTMEncoder",
    "TreeCNNEncoder",
    "register",
]
