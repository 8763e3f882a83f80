"""The model card: the README.md of a saved folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from genpool.saving.card import USES, model_card

SETTINGS = {
    "text": {"rules": "penn", "max_length": None},
    "encoder": {"name": "bilstm", "hidden_dim": 300},
    "pooling": {"name": "generalized", "heads": 5},
}
SIZES = {"parameters": 12_345_678, "table": 9_000_000, "words": 30_000}


def card(**changes) -> str:
    usual = {"kind": "SentenceEncoder", "settings": SETTINGS, "labels": (), "notes": {}}
    return model_card(**{**usual, "sizes": SIZES, **changes})


def table_rows(page: str, heading: str) -> list[str]:
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("|")][2:]


def test_a_card_says_what_the_model_is_and_how_large() -> None:
    page = card()
    assert "# SentenceEncoder: bilstm, generalized pooling\n" in page
    assert "Sentence vectors of a bilstm encoder with generalized pooling" in page
    assert "12,345,678 parameters, 9,000,000 of them in the word table." in page
    assert "Vocabulary: 30,000 words." in page
    assert "Labels" not in page and "How it was made" not in page


def test_a_card_begins_with_its_metadata_between_two_lines() -> None:
    assert re.match(r"---\nlibrary_name: genpool\ntags: \[.*\]\n---\n# ", card())


def test_settings_are_listed_part_by_part() -> None:
    assert table_rows(card(), "Inside") == [
        "| text | rules = penn, max_length = None |",
        "| encoder | name = bilstm, hidden_dim = 300 |",
        "| pooling | name = generalized, heads = 5 |",
    ]


def test_labels_and_title_are_shown() -> None:
    page = card(kind="PairClassifier", labels=("yes", "no"), notes={"title": "My model"})
    assert "# My model\n" in page and "Labels: yes, no." in page
    assert "How it was made" not in page


def test_notes_become_a_table_without_the_title() -> None:
    page = card(notes={"title": "T", "data": "SNLI", "seed": 3})
    assert table_rows(page, "How it was made") == ["| data | SNLI |", "| seed | 3 |"]


def test_a_note_stays_within_its_cell() -> None:
    page = card(notes={"command": "cat a | wc\n-l", "braces {x}": "{y} %s"})
    assert table_rows(page, "How it was made") == [
        r"| command | cat a \| wc -l |",
        "| braces {x} | {y} %s |",
    ]


def test_a_card_says_what_is_in_the_folder_and_whom_to_cite() -> None:
    page = card()
    assert "no code and no pickle" in page
    assert "Enhancing Sentence Embedding with Generalized Pooling" in page and "2018" in page


@pytest.mark.parametrize("kind", ["sentence_encoder", "text_classifier", "pair_classifier"])
def test_the_program_on_the_card_runs(request, tmp_path: Path, capsys, kind: str) -> None:
    model = request.getfixturevalue(kind)
    model.save_pretrained(tmp_path / "model")
    page = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert f"from genpool import {type(model).__name__}" in program
    exec(program.replace("path/to/this/folder", str(tmp_path / "model")), {})
    printed = capsys.readouterr().out
    assert "tensor" in printed if kind == "sentence_encoder" else eval(printed)[0] in model.labels


def test_every_kind_of_model_has_a_use(sentence_encoder, text_classifier, pair_classifier) -> None:
    models = (sentence_encoder, text_classifier, pair_classifier)
    assert set(USES) == {type(model).__name__ for model in models}


def test_the_sizes_on_a_saved_card_are_those_of_the_model(pair_classifier, tmp_path) -> None:
    pair_classifier.save_pretrained(tmp_path / "model")
    page = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    count = sum(weight.numel() for weight in pair_classifier.parameters())
    assert f"{count:,} parameters, 64 of them in the word table. Vocabulary: 16 words." in page
    assert "Labels: entailment, neutral, contradiction." in page
