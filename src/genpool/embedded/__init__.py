"""The models inside the package: a sentence encoder, and an NLI classifier.

    encoder   SentenceEncoder.from_pretrained()
    nli       PairClassifier.from_pretrained()

The README.md of each folder says how the model was made.
"""

from __future__ import annotations

from pathlib import Path

from genpool.errors import FolderError

FOLDERS = {"SentenceEncoder": "encoder", "PairClassifier": "nli"}


def embedded_folder(kind: str) -> Path:
    """Returns the folder of the model inside the package.

    Args:
        kind: the class of the model: "SentenceEncoder" or "PairClassifier".

    Raises:
        FolderError: there is no such model inside the package.
    """
    if kind not in FOLDERS:
        raise FolderError(
            f"there is no pretrained {kind} inside genpool: give the folder of one that you "
            f"trained, {kind}.from_pretrained(FOLDER). On the command line: --model FOLDER, or "
            "MODEL before FILE."
        )
    return Path(__file__).parent / FOLDERS[kind]
