"""The models that come with the package: a sentence encoder, and an NLI classifier.

    encoder   SentenceEncoder.from_pretrained()
    nli       PairClassifier.from_pretrained()

How they were made is said in the README.md of each folder.
"""

from __future__ import annotations

from pathlib import Path

from genpool.errors import FolderError

FOLDERS = {"SentenceEncoder": "encoder", "PairClassifier": "nli"}


def embedded_folder(kind: str) -> Path:
    """The folder of the embedded model of a kind."""
    if kind not in FOLDERS:
        raise FolderError(
            f"no model was given, and genpool has no pretrained {kind} inside: give the folder of "
            f"one that you trained, {kind}.from_pretrained(FOLDER). On the command line: "
            "--model FOLDER, or MODEL before FILE."
        )
    return Path(__file__).parent / FOLDERS[kind]
