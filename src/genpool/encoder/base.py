"""What every encoder shares: the result, the checks of its input, and the base class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from torch import Tensor, nn

from genpool.errors import InputError
from genpool.registry import Configured
from genpool.tensors.arrays import Annotator
from genpool.tensors.modules import boolean_mask, require_positive
from genpool.tensors.packing import Packing

if TYPE_CHECKING:
    from genpool.encoder.lstm import LSTMDirection

#: more layers are a mistake of a recipe, or malice of a file
MAX_LAYERS = 1000
#: states (..., output_dim), and the input gates (..., width) of the top layer or None
StatesAndGates = tuple[Tensor, Tensor | None]


class Encoded(NamedTuple):
    """The result of an encoder.

    Attributes:
        states: one state per token, (batch, time, output_dim), zeros at padding.
        gates: input gates of the top LSTM layer, (batch, time, width), where they were requested;
            otherwise None.

    Example:
        >>> states, gates = LSTMEncoder(300)(vectors, mask, gates=True)
    """

    states: Tensor
    gates: Tensor | None = None


class Encoder(Configured, nn.Module):
    """Base class: token vectors and a mask in, one state per token out.

    Call an encoder as `encoder(inputs, mask)`. A sentence has the same states in any batch, with
    any padding on either side.

    To add an encoder, subclass this class, write `encode_rows`, and register it by a name:
    `genpool.encoder.register("mine", MyEncoder)`. The arguments of its constructor are remembered
    in `options`, by which a model is saved. `encode_rows` sees packed rows only: no padding ever
    reaches a layer, so that the states of a sentence cannot depend on its batch.

    Args:
        input_dim: dimensions of a token vector.
        output_dim: dimensions of a state.

    Raises:
        InputError: a size, here or in a subclass, is less than 1, or an option is unknown.

    Example:
        >>> class LinearEncoder(Encoder):
        ...     def __init__(self, input_dim, output_dim=300):
        ...         super().__init__(input_dim, output_dim)
        ...         self.linear = nn.Linear(input_dim, output_dim)
        ...     def encode_rows(self, rows, packing, gates):
        ...         return self.linear(rows), None
    """

    #: whether states are [forward ; backward], which last pooling depends on
    bidirectional: ClassVar[bool] = False
    #: whether `gates=True` is possible, which gated pooling needs
    has_gates: ClassVar[bool] = False
    #: the kind of integers per token that `encode_rows` reads from `packing.annotations`, if any
    annotator_class: ClassVar[type[Annotator] | None] = None
    #: whether training adds a term of the encoder to the loss (see `extra_loss`)
    has_extra_loss: ClassVar[bool] = False

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        require_positive(input_dim=input_dim)
        self.input_dim = input_dim
        self.output_dim = output_dim

    def forward(
        self, inputs: Tensor, mask: Tensor, gates: bool = False, annotations: Tensor | None = None
    ) -> Encoded:
        """Encodes a batch of sentences.

        Args:
            inputs: token vectors (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.
            gates: also return the input gates of the top layer, for gated pooling; only for
                encoders with `has_gates`.
            annotations: integers per token (batch, time, columns), for encoders with an
                `annotator_class`.

        Raises:
            InputError: a shape or a type does not fit, or gates of an encoder that has none.
        """
        if inputs.dim() != 3 or inputs.shape[-1] != self.input_dim:
            raise InputError(
                f"inputs have shape {tuple(inputs.shape)}; expected (batch, time, "
                f"{self.input_dim}): this encoder was made with input_dim={self.input_dim}."
            )
        mask = boolean_mask(mask, inputs.shape[:2])
        if gates and not self.has_gates:
            raise InputError(
                f"{type(self).__name__} has no input gates; gated pooling needs an LSTM encoder."
            )
        packing = Packing.from_mask(mask, annotations)
        states, gate_rows = self.encode_rows(packing.pack(inputs), packing, gates)
        unpacked = None if gate_rows is None else packing.unpack(gate_rows)
        return Encoded(packing.unpack(states), unpacked)

    def encode_rows(self, rows: Tensor, packing: Packing, gates: bool) -> StatesAndGates:
        """Encodes packed rows.

        Args:
            rows: vectors of the real tokens (rows, input_dim).
            packing: where the rows belong, and their `annotations`.
            gates: whether the input gates are asked for, of an encoder with `has_gates`.

        Returns:
            States (rows, output_dim), and the input gates (rows, width) or None.
        """
        raise NotImplementedError

    def padded_states(
        self, tokens: Tensor, mask: Tensor, lstm: Callable[[LSTMDirection, Tensor], Tensor]
    ) -> Tensor:
        """Encodes padded sentences for an exported graph; LSTM and GRU encoders do not need it.

        Write it without a loop over tokens and without shapes that depend on values.

        Args:
            tokens: (batch, time, input_dim); sentences start at 0, and padding is zeros.
            mask: (batch, time), True at real tokens.
            lstm: returns the states (batch, time, hidden) of a layer for its input.

        Returns:
            States (batch, time, output_dim), of any value at padding.
        """
        raise NotImplementedError

    def make_annotator(self) -> Annotator | None:
        """Returns an annotator of `annotator_class`, with the options of this encoder."""
        return None if self.annotator_class is None else self.annotator_class()

    def tree(self, words: Sequence[str], rows: Tensor, packing: Packing) -> str | None:
        """Returns the words of one sentence with the brackets of the tree that it is encoded by.

        rows (tokens, input_dim) are the vectors of the words. None for an encoder without trees.
        """
        return None

    def set_epoch(self, epoch: int) -> None:
        """Called with the epoch, from 0, before every training step if `has_extra_loss`."""

    def extra_loss(self, log_likelihoods: Tensor) -> Tensor | None:
        """Called once in every training step if `has_extra_loss`.

        For encoders whose decisions have no gradient of their own.

        Args:
            log_likelihoods: log p(label) of each example, (examples,); of pairs, the batch had all
                first sentences before all second ones.

        Returns:
            A scalar to add to the loss, or None.
        """
        return None

    def extra_repr(self) -> str:
        return f"input_dim={self.input_dim}, output_dim={self.output_dim}"


def require_layers(layers: int, **sizes: int) -> None:
    """Raises InputError for sizes below 1 and for too many layers, which take time to create."""
    require_positive(**sizes)
    if not 1 <= layers <= MAX_LAYERS:
        raise InputError(f"layers is {layers}; expected 1 to {MAX_LAYERS:,}.")
