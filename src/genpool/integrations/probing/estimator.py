"""AttentiveProbe: a pooling and a linear classifier on a frozen encoder, as in scikit-learn.

A saved probe names its encoder, with the fingerprint of its weights, and does not copy it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from genpool.disk.atomic import read_consistently
from genpool.disk.folder_format import FolderFormat, file_checksum, write_text
from genpool.errors import FolderError, GenpoolError, InputError, require_extra
from genpool.inference.explanation import Explanation, explain_states
from genpool.integrations.probing import fitting, token_states
from genpool.integrations.probing.token_states import TokenEncoder, TokenStates
from genpool.model import SentenceEncoder
from genpool.progress import progress
from genpool.saving.storage import CARD, CONFIG, WEIGHTS
from genpool.saving.weights_file import WeightsFile, first_not_finite
from genpool.tensors.modules import on_meta_device, require_positive
from genpool.text.validation import read_labels, read_texts

with require_extra("An attentive probe", "sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin

#: texts whose states are in memory at the same time when no cache is used
PREDICTION_TEXTS = 512
CARD_TEXT = """# Attentive probe

{} pooling and a linear classifier on the frozen token states of `{}`.
Labels: {}.

```python
from genpool.integrations.sklearn import AttentiveProbe

probe = AttentiveProbe.from_pretrained("this folder")
print(probe.predict(["A text."]))
```
"""
PROBE = FolderFormat("genpool-probe", "a saved probe", (CONFIG, WEIGHTS, CARD))
#: arguments of a probe that are of the machine or of the training data, not of the model
NOT_SAVED = ("encoder", "cache", "show_progress_bar")


class AttentiveProbe(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of texts on the token states of a frozen encoder, with a trained pooling.

    The states are computed once. The classifier starts as logistic regression on the untrained
    pooling (for generalized pooling: on the mean), then pooling and classifier are trained
    together. How much of the way to the trained weights is gone is chosen on held-out rows, so that
    few or noisy rows lead away from the start only where that helps. It is an estimator of
    scikit-learn: it works in `cross_val_score`, `GridSearchCV` and at the end of a `Pipeline`.

    Args:
        encoder: the frozen encoder. "embedded", the one inside the package; a folder of genpool or
            of sentence-transformers; "transformer:FOLDER", a folder of transformers; or a
            `SentenceEncoder`. Default: "embedded".
        pooling: a name of `genpool.pooling.POOLINGS`, except "gated": "generalized", "scalar",
            "mean", "max", ... Default: "generalized".
        heads: heads of a pooling that has several. Default: 2.
        hidden_dim: width of the attention network of a pooling that has one. Default: 64.
        layers: of a transformer, the layers whose states are mixed by learned weights: "last",
            "all", or their numbers, from 0, the input embeddings. Default: "last".
        steps: how often the parameters are updated. Default: None, 10 epochs, but at least 300 and
            at most 1,000 steps.
        batch_size: texts per step. Default: 32.
        learning_rate: of the pooling. Default: 1e-3.
        weight_decay: of the pooling. Default: 0.1.
        dropout: probability that a dimension of the pooled vector is dropped in training.
            Default: 0.3.
        token_dropout: the share of tokens that are left out of a text in training. Default: 0.2.
        extent: how much of the way from the start to the trained weights is gone, from 0 to 1.
            Default: None, chosen on held-out rows of the training texts, which takes two to four
            times as long as 1.
        cache: a folder in which states are kept, and mapped into memory. Give one for data that
            does not fit into memory, and where states are used again, as in a grid search.
            Default: None, states are in memory and computed for every fit.
        seed: draws batches and what is dropped; equal seeds train equal probes. Default: 0.
        show_progress_bar: show a bar, or lines in a log, on standard error. Default: False.

    Attributes:
        classes_: the labels, in the order of the columns of `predict_proba`.
        model_: the trained part, a PyTorch module.
        c_: the C of the logistic regression that the classifier started as.
        extent_: the extent that was used; 0 for a pooling without parameters.

    Raises:
        InputError: from `fit`, for texts, labels or options that cannot be used.
        MissingExtraError: scikit-learn is not installed.

    Example:
        >>> probe = AttentiveProbe("embedded", pooling="generalized", heads=2)
        >>> probe.fit(["I love it.", "I hate it.", "What a joy."], ["good", "bad", "good"])
        >>> probe.predict(["A joy."])
        array(['good'], dtype='<U4')
    """

    def __init__(
        self,
        encoder: str | Path | SentenceEncoder | TokenEncoder = "embedded",
        pooling: str = "generalized",
        *,
        heads: int = 2,
        hidden_dim: int = 64,
        layers: Literal["last", "all"] | Sequence[int] = "last",
        steps: int | None = None,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.1,
        dropout: float = 0.3,
        token_dropout: float = 0.2,
        extent: float | None = None,
        cache: str | Path | None = None,
        seed: int = 0,
        show_progress_bar: bool = False,
    ) -> None:
        # scikit-learn reads these attributes by the names of the arguments, unchanged.
        self.encoder, self.pooling, self.heads = encoder, pooling, heads
        self.hidden_dim, self.layers, self.steps = hidden_dim, layers, steps
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.weight_decay, self.dropout = weight_decay, dropout
        self.token_dropout, self.extent, self.cache = token_dropout, extent, cache
        self.seed, self.show_progress_bar = seed, show_progress_bar

    def fit(self, texts: Any, labels: Any) -> Self:
        """Trains the probe.

        Args:
            texts: a list, an array of one dimension, a column of a data frame, or what `states`
                returned, which probes with the same encoder and layers can share.
            labels: one label per text: strings, or numbers.

        Returns:
            The probe itself.

        Raises:
            InputError: a text is not a string, a label is missing, the lengths differ, there are
                fewer than two classes, or an option is not possible.
        """
        rows = texts if isinstance(texts, TokenStates) else read_texts(texts)
        values = np.array(read_labels(labels, len(rows), classes=2))
        sizes = {"heads": self.heads, "hidden_dim": self.hidden_dim, "batch_size": self.batch_size}
        require_positive(**sizes, steps=1 if self.steps is None else self.steps)
        for name in ("dropout", "token_dropout"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise InputError(f"{name} is {value!r}; expected 0 or more, and less than 1.")
        if self.extent is not None and not 0 <= self.extent <= 1:
            raise InputError(f"extent is {self.extent!r}; expected None, or from 0 to 1.")
        states = self.states(rows)
        classes, numbers = np.unique(values, return_inverse=True)
        torch.manual_seed(self.seed)
        model = self._build_model(len(classes))
        self.c_, self.extent_ = fitting.fit_probe(model, states, numbers, self)
        self.model_, self.classes_ = model, classes
        return self

    def states(self, texts: Any) -> TokenStates:
        """Returns the token states of texts as `fit` takes them, from the cache or computed."""
        if isinstance(texts, TokenStates):
            return texts
        rows, encoder = read_texts(texts), self.token_encoder
        cache = None if self.cache is None else token_states.open_state_cache(self.cache, encoder)
        with progress("token states", len(rows), self.show_progress_bar) as done:
            return token_states.encode_states(encoder, rows, cache, done)

    def predict_proba(self, texts: Any) -> NDArray[np.float64]:
        """Returns the probability of every label.

        Args:
            texts: as for `fit`.

        Returns:
            (texts, labels), in the order of `classes_`; every row sums to 1.

        Raises:
            InputError: a text is not a string, or the probe is not trained.
        """
        self._require_trained()
        rows = texts if isinstance(texts, TokenStates) else read_texts(texts)
        # Without a cache, only some of the states are in memory at the same time.
        size = PREDICTION_TEXTS if self.cache is None else max(1, len(rows))
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        logits = [fitting.probe_logits(self.model_, self.states(part)) for part in parts]
        chunks = [part.double().softmax(dim=1).numpy() for part in logits]  # (texts, labels)
        return np.concatenate([np.zeros((0, len(self.classes_))), *chunks])

    def predict(self, texts: Any) -> NDArray[Any]:
        """Returns the most probable label of every text, (texts,); texts as for `fit`."""
        best = self.predict_proba(texts).argmax(axis=1)  # (texts,)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def explain(self, text: str) -> Explanation:
        """Returns what each head looks at in a text: print it, or write its `to_html()`."""
        self._require_trained()
        (text,) = read_texts([text])
        rows, _ = self.states([text]).batch(np.zeros(1, dtype=np.int64))  # (tokens, layers, dim)
        tokens = self.token_encoder.tokens(text)
        with torch.no_grad():
            states = self.model_.standardized(rows)  # (tokens, dim)
        return explain_states(text, tokens, states, self.model_.eval().pooling)

    def save_pretrained(self, path: str | Path) -> None:
        """Writes the trained probe as a folder; the encoder is named in it, not copied.

        Args:
            path: the folder, new or that of an earlier probe.

        Raises:
            FolderError: there is something else at `path`, or it cannot be written.
            InputError: the probe is not trained, or its encoder exists in memory only.
        """
        self._require_trained()
        encoder, weights = self.token_encoder, self.model_.state_dict()
        if encoder.reference is None:
            raise InputError(
                "the encoder of this probe exists in memory only, so that a saved probe could not "
                "name it. Save the encoder, and fit the probe with encoder=FOLDER."
            )
        if (damaged := first_not_finite(weights)) is not None:
            raise FolderError(f"{path}: the probe was not saved, because {damaged} is not finite.")
        arguments = self.get_params(deep=False)
        config = {
            "encoder": encoder.reference,
            "fingerprint": encoder.fingerprint,
            "arguments": {name: arguments[name] for name in arguments if name not in NOT_SAVED},
            "classes": self.classes_.tolist(),
            "c": self.c_,
            "extent": self.extent_,
        }
        card = CARD_TEXT.format(self.pooling, encoder.reference, ", ".join(map(str, self.classes_)))
        with PROBE.replace(path, "the probe") as fresh:
            write_text(fresh / CARD, card)
            save_file(weights, fresh / WEIGHTS, metadata={"format": "pt"})
            PROBE.write(fresh, config, {WEIGHTS: file_checksum(fresh / WEIGHTS)})

    @classmethod
    def from_pretrained(
        cls, path: str | Path, encoder: str | Path | SentenceEncoder | None = None
    ) -> Self:
        """Loads a probe that `save_pretrained` wrote; nothing in the folder is run as code.

        Args:
            path: the folder.
            encoder: the encoder, if it is somewhere else now. It must have the same weights.
                Default: None, the one that the folder names.

        Raises:
            FolderError: the folder is missing, damaged, or of another kind, or the encoder is
                another one than that of the training.
        """
        folder = Path(path)
        try:
            return read_consistently(folder, lambda: cls._load(folder, encoder))
        except OSError as error:
            raise FolderError(f"{folder} cannot be read: {error}") from error

    @classmethod
    def _load(cls, folder: Path, encoder: Any) -> Self:
        config, file = PROBE.read(folder), WeightsFile.open(folder / WEIGHTS)
        try:
            probe = cls(encoder or config["encoder"], **config["arguments"])
            probe.classes_ = np.array(config["classes"])
            probe.c_, probe.extent_ = float(config["c"]), float(config["extent"])
            probe._require_encoder(str(config["fingerprint"]), folder)
            with on_meta_device():  # sizes only: memory is taken when they are known to agree
                probe.model_ = probe._build_model(len(probe.classes_))
        except GenpoolError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FolderError(f"{folder / CONFIG} is damaged: {error!r}") from error
        file.require_tensors(probe.model_.state_dict(), CONFIG)
        weights, checksum = file.read()
        PROBE.require_checksums(folder, config, {WEIGHTS: checksum})
        probe.model_.eval().load_state_dict(weights, assign=True)
        return probe

    def _require_encoder(self, fingerprint: str, folder: Path) -> None:
        """Raises FolderError unless the encoder is there and the one that a folder names."""
        try:
            opened = self.token_encoder
        except FolderError as error:
            raise FolderError(
                f"the encoder of the probe {folder} cannot be loaded: {error} If it is somewhere "
                "else now, say where: from_pretrained(path, encoder=...) (command line: --encoder)."
            ) from error
        if opened.fingerprint != fingerprint:
            raise FolderError(
                f"{opened.reference} is not the encoder that the probe {folder} was trained on: "
                f"its fingerprint is {opened.fingerprint[:19]}, that of the training was "
                f"{fingerprint[:19]}."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.string = tags.no_validation = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: state[name] for name in state if name != "_opened"}  # opened again if needed

    def _require_trained(self) -> None:
        if not hasattr(self, "model_"):
            raise InputError("this probe is not trained yet: call fit(texts, labels) first.")

    @property
    def token_encoder(self) -> TokenEncoder:
        """The opened encoder."""
        key = (self.encoder, self.layers)
        if getattr(self, "_opened", (None,))[0] != key:
            self._opened = (key, token_states.open_token_encoder(self.encoder, self.layers))
        return self._opened[1]

    def _build_model(self, classes: int) -> fitting.ProbeModel:
        """Returns the part that is trained, with initial weights."""
        encoder, options = self.token_encoder, {"heads": self.heads, "hidden_dim": self.hidden_dim}
        pooling = fitting.probe_pooling(self.pooling, encoder.dim, encoder.bidirectional, **options)
        return fitting.ProbeModel(pooling, encoder.layers, classes, self.dropout)
