"""The whole way in a minute: train on a corpus made by rules, then use the model."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from genpool.model import PairClassifier
from genpool.recipes import recipe_text
from genpool.training import read_settings, train

#: smaller than the recipe: enough to see it learn
OVERRIDES = ("reader.sizes=[4500, 600, 600]", "training.epochs=4", "training.learning_rate=2e-3")

SENTENCES = ["A dog runs in the park.", "An animal runs in the park.", "A woman reads a book."]


def run() -> None:
    torch.set_num_threads(1)  # tensors this small gain nothing from a second thread
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        print("1. Train: sentence pairs made by rules; does the first sentence imply the second?\n")
        results = train(read_settings(recipe_text("rules"), OVERRIDES, "rules"), None, out)
        print(f"\n   accuracy on new pairs: {100 * results['test']['accuracy']:.1f} %\n")
        model = PairClassifier.from_pretrained(out / "best")
    encoder = model.encoder

    print("2. Encode: one vector per sentence\n")
    vectors = encoder.encode(SENTENCES)
    print(f"   {len(SENTENCES)} sentences -> {vectors.shape}\n")

    print("3. Compare: cosines\n")
    for sentence, row in zip(SENTENCES, encoder.similarity(vectors, vectors), strict=True):
        print("   " + "  ".join(f"{float(cosine):5.2f}" for cosine in row), " ", sentence)

    print("\n4. Explain: what each head looks at\n")
    for line in str(encoder.explain(SENTENCES[0])).splitlines():
        print("   " + line)

    print("\n5. Classify pairs\n")
    pairs = [(SENTENCES[0], SENTENCES[1]), (SENTENCES[1], SENTENCES[0])]
    pairs.append((SENTENCES[0], "A dog does not run in the park."))
    for (premise, hypothesis), label in zip(pairs, model.predict(pairs), strict=True):
        print(f"   {label:13}  {premise}  ->  {hypothesis}")
    print("\nNext: `genpool recipes` lists what can be trained; README.md shows the Python side.")
