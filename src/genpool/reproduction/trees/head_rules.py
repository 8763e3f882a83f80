"""Dependency trees from constituency parses: (ROOT (S (NP (DT A) (NN man)) (VP (VBZ sleeps)))).

Heads follow the rules of Collins (1999), except that the head of a verb phrase is its main verb, as
in Stanford's typed dependencies. Relations are named by the labels of phrase and dependent, which
is simpler than Stanford's patterns and sometimes differs from them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from genpool.errors import InputError
from genpool.tensors.arrays import Annotation

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: relations of typed dependencies that are told apart; the first stands for all others
RELATIONS: tuple[str, ...] = tuple(_DATA["relations"])
_IDS = {name: place for place, name in enumerate(RELATIONS)}
_IDS |= {name: _IDS[known] for name, known in _DATA["synonyms"].items()}
_BY_LABEL: dict[str, str] = _DATA["by_label"]
#: the head of a phrase: in order the side to start from, and the labels
_RULES: dict[str, list[list[str]]] = _DATA["heads"]
_RULES |= {label: _RULES[other] for label, other in _DATA["same_heads"].items()}
_PUNCTUATION, _NOUNS, _VERBS, _CLAUSES, _BE, _NEGATIONS, _ADVERBS = _DATA["groups"].values()


def relation_id(name: str) -> int:
    """Returns the place of a relation in `RELATIONS`; a subtype is its type, an unknown one 0."""
    name = name.lower()
    return _IDS.get(name, _IDS.get(name.split(":")[0], 0))


@dataclass
class _Phrase:
    label: str
    children: list[_Phrase] = field(default_factory=list)
    token: int = -1  # of a single word
    head: int = -1  # the token that is the head of the phrase


def constituency_dependencies(parse: str) -> tuple[list[str], Annotation]:
    """Returns the words of a constituency parse and their dependency tree (tokens, 2)."""
    words: list[str] = []
    root = _read(parse, words)
    heads = np.full((len(words), 2), -1, dtype=np.int32)
    heads[:, 1] = 0
    _attach(root, words, heads)
    return words, heads


def _read(parse: str, words: list[str]) -> _Phrase:
    """Returns the outermost phrase; its words are added to the list."""
    open_phrases = [_Phrase("")]
    tokens = re.findall(r"[()]|[^\s()]+", parse)
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token == "(":
            open_phrases.append(_Phrase(""))
        elif token == ")":
            phrase = open_phrases.pop()
            if not open_phrases or (phrase.token < 0 and not phrase.children):
                raise InputError(f"the brackets of the parse do not match, after {words[-3:]}.")
            open_phrases[-1].children.append(phrase)
        elif before == "(":
            open_phrases[-1].label = re.split(r"(?<=.)[-=]", token)[0] if token[0] != "-" else token
        else:
            open_phrases[-1].token = len(words)
            words.append(token)
    if len(open_phrases) != 1 or not words:
        raise InputError(f"the brackets of the parse do not match, at its end ({words[-3:]}).")
    return open_phrases[0]


def _attach(phrase: _Phrase, words: list[str], heads: Annotation) -> None:
    """Finds the heads of a phrase and of all phrases in it; enters its dependents into heads."""
    for child in phrase.children:
        _attach(child, words, heads)
    if not phrase.children:
        phrase.head = phrase.token
        return
    place = _head_child(phrase)
    head = phrase.children[place]
    phrase.head = head.head
    for number, child in enumerate(phrase.children):
        if number != place:
            relation = _relation(phrase, place, number, words)
            heads[child.head] = (head.head, relation_id(relation))


def _head_child(phrase: _Phrase) -> int:
    labels = [child.label for child in phrase.children]
    for side, *wanted in _RULES.get(phrase.label, ()):
        places = [place for place, label in enumerate(labels) if label in wanted]
        if places:
            return places[-1 if side == "right" else 0]
    words = [place for place, label in enumerate(labels) if label not in (*_PUNCTUATION, "CC")]
    return words[0] if words else 0


def _relation(phrase: _Phrase, head_place: int, place: int, words: list[str]) -> str:
    """Returns the relation of a child to the head of its phrase."""
    child, head = phrase.children[place], phrase.children[head_place]
    between = phrase.children[min(place, head_place) + 1 : max(place, head_place)]
    if child.label in _PUNCTUATION:
        return "punct"
    if child.label[:2] == head.label[:2] and any(other.label == "CC" for other in between):
        return "conj"
    word = words[child.head].lower()
    if child.label in _ADVERBS:
        return "neg" if word in _NEGATIONS else "advmod"
    if child.label in _BY_LABEL:
        return _BY_LABEL[child.label]
    if phrase.label in ("NP", "NX", "WHNP"):
        return _in_noun_phrase(child, place < head_place)
    if phrase.label in ("PP", "WHPP"):
        return "pobj" if child.label in ("NP", "WHNP", *_NOUNS) else "pcomp"
    if phrase.label in ("VP", "SQ"):
        return _in_verb_phrase(child, head, word, words)
    if child.label == "NP":
        return "nsubj" if place < head_place else "dobj"
    if phrase.label == "SBAR" and child.label == "IN":
        return "mark"
    return "advcl" if child.label in _CLAUSES else "dep"


def _in_noun_phrase(child: _Phrase, is_before: bool) -> str:
    if child.label == "NP":
        has_clitic = bool(child.children) and child.children[-1].label == "POS"
        return "poss" if has_clitic else "nmod" if is_before else "appos"
    if child.label in _NOUNS:
        return "compound"
    if child.label in ("VP", "S"):
        return "acl"
    return "relcl" if child.label == "SBAR" else "amod"


def _in_verb_phrase(child: _Phrase, head: _Phrase, word: str, words: list[str]) -> str:
    if child.label in (*_VERBS, "TO"):
        is_passive = word in _BE and _first_label(head) == "VBN"
        return "auxpass" if is_passive else "aux"
    if child.label in ("NP", "WHNP"):
        return "attr" if words[head.head].lower() in _BE else "dobj"
    if child.label == "ADJP":
        return "acomp"
    if child.label == "SBAR":
        first = child.children[0] if child.children else child
        is_marked = first.label == "IN" and words[first.head] != "that"
        return "advcl" if is_marked else "ccomp"
    if child.label in _CLAUSES:
        has_subject = any(part.label == "NP" for part in child.children)
        return "ccomp" if has_subject else "xcomp"
    return "xcomp" if child.label == "VP" else "dep"


def _first_label(phrase: _Phrase) -> str:
    while phrase.children:
        phrase = phrase.children[0]
    return phrase.label
