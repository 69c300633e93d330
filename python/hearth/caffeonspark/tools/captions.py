"""Converts captions to numbers for a net with an LSTM, and back, in the format of LRCN's nets.

A word's number is its position in the vocabulary, from 1; 0 starts and ends a sentence; -1 is
padding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hearth.errors import invalid

# The vocabulary's first word represents unknown words.
UNKNOWN = "UNK"
_UNKNOWN_ID = 1
_START_END, _FILL = 0, -1
_TOKEN = re.compile(r"\w+|\W+")


class Embedding(NamedTuple):
    """For each step: the LSTM's input, whether the step continues a sentence, the expected
    output."""

    input: list[int]
    cont: list[int]
    target: list[int]


def words_of(sentence: str) -> list[str]:
    """Words and punctuation in lower case, without the full stop at the end."""
    tokens = [token.strip() for token in _TOKEN.findall(sentence.lower())]
    words = [token for token in tokens if token]
    return words[:-1] if words and words[-1] == "." else words


def embed(sentence: str, ids: Mapping[str, int], length: int) -> Embedding:
    """Converts the first length - 1 words of the sentence to three lists of `length` numbers."""
    said = [ids.get(word, _UNKNOWN_ID) for word in words_of(sentence)][: length - 1]
    fill = [_FILL] * (length - 1 - len(said))
    return Embedding(
        [_START_END, *said, *fill], [0] + [1] * len(said) + fill, [*said, _START_END, *fill]
    )


def caption(ids: Iterable[int], words: Sequence[str]) -> str:
    """Converts numbers to words, without start, end and padding.

    Raises:
        ValueError: a number is outside the vocabulary.
    """
    said = []
    for number in ids:
        if number > len(words) or number < _FILL:
            raise invalid(f"word number {number} is outside a vocabulary of {len(words)} words")
        if number > _START_END:
            said.append(words[number - 1])
    return " ".join(said)
