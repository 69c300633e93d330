"""Generates captions word by word: the most likely word is the net's next input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import caffe

_START_END = 0


class Captioner:
    """A trained net of one LSTM step (lrcn_word_to_preds.prototxt). Not thread-safe."""

    def __init__(self, net: str, weights: str, words: Sequence[str]):
        """`words`: the vocabulary; words are numbered by their position in it, from 1."""
        self._net = caffe.Net(net, weights, caffe.TEST)
        self._words = list(words)

    def say(self, features: np.ndarray, longest: int = 50) -> list[str]:
        """Generates a caption per row of `features` (the net's image_features, a row per image)."""
        said = self._numbers(np.asarray(features, np.float32), longest)
        return [_sentence([self._words[number - 1] for number in row]) for row in said]

    def _numbers(self, features: np.ndarray, longest: int) -> list[list[int]]:
        inputs = {"cont_sentence": (1,), "input_sentence": (1,), "image_features": ()}
        for name, ahead in inputs.items():
            shape = features.shape if name == "image_features" else (*ahead, len(features))
            self._net.blobs[name].reshape(*shape)
        said: list[list[int]] = [[] for _ in features]
        ended = np.zeros(len(features), bool)
        last = np.full(len(features), _START_END)
        for step in range(longest):
            # 0 resets the LSTM layers' state between sentences.
            self._net.blobs["cont_sentence"].data[...] = min(step, 1)
            self._net.blobs["input_sentence"].data[...] = last
            self._net.blobs["image_features"].data[...] = features
            last = self._net.forward()["probs"][0].argmax(axis=1)
            ended |= last == _START_END
            if ended.all():
                break
            for row in np.flatnonzero(~ended):
                said[row].append(int(last[row]))
        return said


def _sentence(words: list[str]) -> str:
    return " ".join(words).capitalize() + "."
