"""Token vectors and a mask in, one state per token out.

>>> from genpool.encoder import ENCODERS
>>> encoder = ENCODERS["stacked-bilstm"](300, hidden_dim=300, layers=3)
>>> states, gates = encoder(vectors, mask)     # vectors (batch, time, 300)
"""

from genpool import registry
from genpool.encoder.base import Encoded, Encoder
from genpool.encoder.baselines import (
    BagOfWordsEncoder,
    CNNEncoder,
    GRUEncoder,
    LSTMEncoder,
    ResidualStackedEncoder,
    ShortcutStackedEncoder,
)
from genpool.encoder.lstm import BiLSTMEncoder, StackedBiLSTMEncoder

_CLASSES: dict[str, type[Encoder]] = {
    "stacked-bilstm": StackedBiLSTMEncoder,
    "bilstm": BiLSTMEncoder,
    "shortcut-stacked": ShortcutStackedEncoder,
    "residual-stacked": ResidualStackedEncoder,
    "lstm": LSTMEncoder,
    "gru": GRUEncoder,
    "cnn": CNNEncoder,
    "bag-of-words": BagOfWordsEncoder,
}
#: every encoder by its name in settings and saved folders
ENCODERS: registry.Registry[Encoder] = registry.Registry("encoder", Encoder, _CLASSES)
register = ENCODERS.register

__all__ = [
    "ENCODERS",
    "BagOfWordsEncoder",
    "BiLSTMEncoder",
    "CNNEncoder",
    "Encoded",
    "Encoder",
    "GRUEncoder",
    "LSTMEncoder",
    "ResidualStackedEncoder",
    "ShortcutStackedEncoder",
    "StackedBiLSTMEncoder",
    "register",
]
