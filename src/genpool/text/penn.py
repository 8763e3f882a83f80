r"""The Penn Treebank conventions for English, as one regular expression.

`PATTERN` matches what is separated from its neighbours: punctuation, clitics (`n't`, `'s`), web
addresses, emoji. The rest, split at spaces, are the words. Of two rules that match at the same
character, the earlier one wins.

Time is linear in the length of the text. Three conditions keep it so, for every new rule too (the
syntax is Oniguruma's): a repetition that may be long is possessive (`++`, `*+`); it cannot start
in the middle of what it repeats (`(?<!x)x++`); a look-behind is short.
"""

from __future__ import annotations

SPACE = r"\s\x1c-\x1f"  # exactly the characters at which str.split() splits
SPACES = f"[{SPACE}]+"
ALNUM = r"\p{L}\p{M}\p{N}"
CASED = r"\p{Lu}\p{Ll}"  # letters of scripts that abbreviate with a period
APOSTROPHE = r"['\x{2018}\x{2019}]"
HYPHEN = r"\-\x{2010}\x{2011}"

WORD_BEGINS = rf"(?<![{ALNUM}])"
WORD_ENDS = rf"(?![{ALNUM}]|[{HYPHEN}][{ALNUM}])"  # "women's-only" goes on after its 's
SPACE_FOLLOWS = rf"(?![^{SPACE}])"  # a space or the end of the text

# The period belongs to these words, however they are capitalised ...
ABBREVIATIONS = (
    "mr mrs ms dr prof messrs mme st mt ft jr sr vs etc inc corp ltd bros llc dept approx esp "
    "ave blvd rd rte rt hwy capt lt sgt cpl cmdr gov maj "
    "jan feb aug sept oct nov dec tues thurs oz lb lbs"
)
# ... to these only with a capital, because the small words end sentences ("a good rep.") ...
CAPITAL_ABBREVIATIONS = (
    "Co Col Gen Hon Pres Rep Rev Sen Adm Ala Ariz Calif Colo Conn Fla Kan Ky Md Mich Minn Mo "
    "Neb Nev Okla Ore Tenn Tex Va Vt Wis Wyo"
)
# ... and to one letter, alone ("J.", but the word "I" ends sentences) or after another ("U.S.").
KEEPS_ITS_PERIOD = (
    rf"\b(?i:{'|'.join(ABBREVIATIONS.split())}|ph[.]d)"
    rf"|\b(?:{'|'.join(CAPITAL_ABBREVIATIONS.split())})"
    rf"|(?<![{ALNUM}{HYPHEN}])[{CASED}&&[^I]]|\b[{CASED}][.][{CASED}]"
)
# The word "No" ends sentences too: these keep the period only before a number ("No. 5").
NUMBERED = r"(?<=\b(?:No|Nos|[Vv]ol|[Ff]ig|[Cc]h|pp))[.][ ]?\p{N}"

# An apostrophe that is part of the word, at its beginning ('em, '60s) or its end (ol', goin').
CLIPPED_AT_START = rf"(?i:em|til|till|cause|cuz|bout|neath|nuff|n|\d\ds?)(?![{ALNUM}])"
CLIPPED_AT_END = r"\b(?i:n|ol|lil)|\p{L}\p{L}in"

# An address goes up to the next space, without the punctuation of the sentence.
_OUTSIDE = r""".,;:!?'"()\[\]{}<>*\x{2019}\x{201D}\x{2026}"""
_WEB_ADDRESS = (
    rf"{WORD_BEGINS}(?i:https?://|ftp://|www[.])(?:[{_OUTSIDE}]*+[^{SPACE}{_OUTSIDE}]++)++"
)
# One emoji with its modifiers, several joined into one, or a flag.
_PICTURE = (
    r"\p{Extended_Pictographic}"
    r"[\x{FE0E}\x{FE0F}\x{20E3}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*+"
)
_EMOJI = rf"{_PICTURE}(?:\x{{200D}}{_PICTURE})*+|[\x{{1F1E6}}-\x{{1F1FF}}]{{2}}"


def _joiner(character: str) -> str:
    """Returns the rule for a character that joins words (`his/her`) and is separated elsewhere."""
    not_after_a_word = rf"(?<![{ALNUM}{character}])[{character}]++"
    not_before_a_word = rf"(?<![{character}])[{character}]++(?![{ALNUM}])"
    return f"{not_after_a_word}|{not_before_a_word}"


# Matches that start with a letter. Of two words written as one (can|not, gon|na) the rule matches
# the first; the second is the rest.
LETTER_RULES: dict[str, str] = {
    "web address": _WEB_ADDRESS,
    "two words written as one": (
        rf"(?<![{ALNUM}{HYPHEN}])(?i:can(?=not{WORD_ENDS})|gim(?=me{WORD_ENDS})"
        rf"|gon(?=na{WORD_ENDS})|got(?=ta{WORD_ENDS})|lem(?=me{WORD_ENDS})|wan(?=na{WORD_ENDS})"
        rf"|d{APOSTROPHE}(?=ye{WORD_ENDS}))"
    ),
    "negation": rf"(?<=\p{{L}})(?i:n{APOSTROPHE}t){WORD_ENDS}",
}

SYMBOL_RULES: dict[str, str] = {
    "markup, when it has no space inside": (
        rf"</?[A-Za-z][^{SPACE}<>]*+>|&(?:[A-Za-z]{{2,8}}|#[0-9]{{1,7}}|#[xX][0-9A-Fa-f]{{1,6}});"
    ),
    "Penn's name for a bracket": r"-[LR][RSC]B-",
    "emoticon": (
        rf"(?<!\p{{N}})[:;=][-^']?[()]++(?![{ALNUM}])"
        rf"|{WORD_BEGINS}[:;=][-^']?[DPpOo](?![{ALNUM}])"
        rf"|{WORD_BEGINS}[:=]-?[/\\|*\[\]]{SPACE_FOLLOWS}"
        rf"|</?3(?![{ALNUM}])|\^[_.-]?\^|-_++-|>_<"
    ),
    "emoji": _EMOJI,
    "'t in 'tis": rf"{WORD_BEGINS}{APOSTROPHE}(?i:t(?=(?:is|was){WORD_ENDS}))",
    "clitic": (
        rf"(?<=[^{SPACE}]){APOSTROPHE}(?i:s|re|ve|ll|d|m){WORD_ENDS}"
        rf"|{APOSTROPHE}(?i:s|re|ve|ll|d|m){SPACE_FOLLOWS}"  # text that is tokenized already
        rf"|(?<=\b(?i:more)){APOSTROPHE}(?i:n){WORD_ENDS}"
    ),
    "double quote of two characters": rf"``|{APOSTROPHE}{{2}}",
    "opening single quote": rf"{WORD_BEGINS}{APOSTROPHE}(?!{CLIPPED_AT_START}|[{SPACE}])",
    "closing single quote": rf"(?<!{CLIPPED_AT_END}){APOSTROPHE}(?![{ALNUM}])",
    "ellipsis": r"[.]{3}",
    "full stop": (
        rf"(?<!{KEEPS_ITS_PERIOD})(?!{NUMBERED})[.](?![{ALNUM}])|{WORD_BEGINS}[.](?=\p{{L}})"
    ),
    "dash": r"--++",
    "hyphen, but not a minus sign or in U.S.-based": (
        rf"(?<![{ALNUM}]|[{CASED}][.][{CASED}][.])[{HYPHEN}](?!\p{{N}})|[{HYPHEN}](?![{ALNUM}])"
    ),
    "slash": _joiner("/"),
    "underscore": _joiner("_"),
    "asterisk": _joiner("*"),
    "plus sign": _joiner("+"),
    "at sign, but not in an address or @name": rf"@(?![{ALNUM}])",
    "number sign, but not in a #hashtag": r"#(?![\p{L}\p{M}])",
    "ampersand, but not in AT&T": r"(?<!\p{Lu})&|&(?!\p{Lu})",
    "comma or colon, but not inside a number": r"(?<!\p{N})[,:]|[,:](?!\p{N})",
    "any other punctuation or symbol": (
        rf"[[\p{{P}}\p{{S}}]&&[^.,:/_*+@#&'\x{{2018}}\x{{2019}}{HYPHEN}]]"
    ),
}


def _first_of(rules: dict[str, str]) -> str:
    return "|".join(f"(?:{rule})" for rule in rules.values())


# The look-ahead lets the search skip letters quickly: without it, it is ten times slower.
PATTERN = (
    _first_of(LETTER_RULES)
    + rf"|(?=[\p{{P}}\p{{S}}\p{{Extended_Pictographic}}])(?:{_first_of(SYMBOL_RULES)})"
)

#: where a word of these conventions has parts of its own: hyphens, slashes, web addresses
PARTS = (
    rf"(?<=[{ALNUM}])[{HYPHEN}/_+*=|\\~@#&:]++(?=[{ALNUM}])"
    rf"|(?<![{ALNUM}])[@#{HYPHEN}](?=[{ALNUM}])"
    r"|(?<=\p{L}\p{L})[.](?=\p{L}\p{L})"
    r"|://"
)
