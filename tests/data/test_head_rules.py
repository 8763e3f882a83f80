"""Dependencies from constituency parses, against trees that were worked out by hand."""

from __future__ import annotations

import pytest

from genpool.data.head_rules import constituency_dependencies
from genpool.errors import InputError
from genpool.trees import RELATIONS, TREE_KINDS

#: a parse, and for every word its head and relation
PARSES = [
    (
        "(ROOT (S (NP (DT A) (NN man)) (VP (VBZ sleeps)) (. .)))",
        "A>man:det man>sleeps:nsubj sleeps>:dep .>sleeps:punct",
    ),
    (
        "(ROOT (S (NP (NP (DT A) (JJ young) (NN girl)) (PP (IN in) (NP (NN front))))"
        " (VP (VBZ is) (RB not) (VP (VBG eating) (NP (PRP$ her) (NN lunch))))))",
        "A>girl:det young>girl:amod girl>eating:nsubj in>girl:prep front>in:pobj is>eating:aux "
        "not>eating:neg eating>:dep her>lunch:poss lunch>eating:dobj",
    ),
    (
        "(ROOT (S (NP (CD Two) (NN soccer) (NNS players)) (VP (VBP are) (VP (VBN watched)"
        " (PP (IN by) (NP (NP (DT the) (NN coach) (POS 's)) (NNS kids)))))))",
        "Two>players:nummod soccer>players:compound players>watched:nsubj are>watched:auxpass "
        "watched>:dep by>watched:prep the>coach:det coach>kids:poss 's>coach:case kids>by:pobj",
    ),
    (
        "(ROOT (NP (NP (NNS Men)) (CC and) (NP (NNS women)) (SBAR (WHNP (WP who)) (S (VP (MD can)"
        " (VP (VB run) (ADVP (RB fast))))))))",
        "Men>:dep and>Men:cc women>Men:conj who>run:dep can>run:aux run>Men:relcl fast>run:advmod",
    ),
    (
        "(ROOT (S (NP (PRP He)) (VP (VBZ wants) (S (VP (TO to) (VP (VB be) (NP (DT a) (NN cook)))))"
        " (SBAR (IN because) (S (NP (PRP he)) (VP (VBZ eats)))))))",
        "He>wants:nsubj wants>:dep to>be:aux be>wants:xcomp a>cook:det cook>be:attr "
        "because>eats:mark he>eats:nsubj eats>wants:advcl",
    ),
    ("(ROOT (FRAG (NP (NN Dog))))", "Dog>:dep"),
]


@pytest.mark.parametrize(("parse", "expected"), PARSES)
def test_heads_and_relations_are_those_worked_out_by_hand(parse: str, expected: str) -> None:
    words, tree = constituency_dependencies(parse)
    TREE_KINDS["dependency"].check(tree)
    actual = [
        f"{word}>{words[head] if head >= 0 else ''}:{RELATIONS[relation]}"
        for word, (head, relation) in zip(words, tree.tolist(), strict=True)
    ]
    assert actual == expected.split()


def test_phrases_of_any_label_and_depth_have_one_root() -> None:
    parse = "(X (. .) (CC and) (XX (-LRB- -LRB-) (FW foo) (-RRB- -RRB-)) (NP-TMP (NN day)))"
    words, tree = constituency_dependencies(parse)
    assert words == [".", "and", "-LRB-", "foo", "-RRB-", "day"]
    TREE_KINDS["dependency"].check(tree)


@pytest.mark.parametrize("parse", ["", "(ROOT", "(ROOT (NN dog)))", "(ROOT (NP ))", "( )"])
def test_what_is_no_parse_is_refused(parse: str) -> None:
    with pytest.raises(InputError, match="brackets of the parse do not match"):
        constituency_dependencies(parse)
