"""A tour of the models inside the package, in a few seconds."""

from __future__ import annotations

import torch

from genpool.model import PairClassifier, SentenceEncoder

SENTENCES = [
    "A dog runs along the beach.",
    "An animal is moving quickly by the sea.",
    "The committee postponed its decision.",
]
PAIRS = [
    ("A dog runs along the beach.", "An animal is outside."),
    ("A dog runs along the beach.", "A dog is asleep."),
    ("A dog runs along the beach.", "A dog chases a ball."),
]
NEXT = """Next:
   genpool encode sentences.txt -o index/     vectors of a file, one sentence per line
   genpool search index/ "a question"         the sentences closest to it
   genpool recipes                            what can be trained, on your data or others'
   README.md                                  the same from Python, and much more"""


def run() -> None:
    """Prints what the embedded encoder and classifier return for a few sentences."""
    torch.set_num_threads(1)  # so few sentences gain nothing from a second thread
    encoder = SentenceEncoder.from_pretrained()

    print("1. Encode: one vector for each sentence\n")
    vectors = encoder.encode(SENTENCES)
    print(f"   {len(SENTENCES)} sentences -> {vectors.shape}\n")

    print("2. Compare: cosines\n")
    for sentence, row in zip(SENTENCES, encoder.similarity(vectors, vectors), strict=True):
        print("   " + "  ".join(f"{float(cosine):5.2f}" for cosine in row), " ", sentence)

    print("\n3. Explain: what each head of the pooling looks at\n")
    for line in str(encoder.explain(SENTENCES[0])).splitlines():
        print("   " + line)

    print("\n4. Classify: does the first sentence imply the second?\n")
    classifier = PairClassifier.from_pretrained()
    for (premise, hypothesis), label in zip(PAIRS, classifier.predict(PAIRS), strict=True):
        print(f"   {label:13}  {premise}  ->  {hypothesis}")
    print("\n" + NEXT)
