"""A tour of the models inside the package, in a few seconds."""

from __future__ import annotations

import torch

from genpool.inference.explanation import PairExplanation
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
   genpool serve                              the same in a browser, and over HTTP
   genpool recipes                            what can be trained, on your data or others'
   README.md                                  the same from Python, and much more"""


def label_with_words(pair: PairExplanation) -> str:
    """Returns the label of a pair, and the word of either side that speaks most for it."""
    if pair.prediction is None:
        return ""
    words = [
        side.tokens[int(influence.argmax())].text
        for side, influence in zip(pair.sentences, pair.prediction.influence, strict=True)
    ]
    return f"{pair.prediction.label}, because of {words[0]!r} and {words[1]!r}"


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

    print("\n3. Explain: which words matter, to the vector and to each head of the pooling\n")
    for line in str(encoder.explain(SENTENCES[0])).splitlines():
        print("   " + line)

    print("\n4. Classify: does the first sentence imply the second?\n")
    classifier = PairClassifier.from_pretrained()
    for premise, hypothesis in PAIRS:
        pair = classifier.explain(premise, hypothesis)
        print(f"   {premise}  ->  {hypothesis}  {label_with_words(pair)}")
    print("\n" + NEXT)
