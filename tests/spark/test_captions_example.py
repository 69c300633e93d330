"""examples/captions: the net learns, and predicts the same by words as by sentences."""

import sys

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT))
from examples.captions import run, shapes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("captions")


@pytest.fixture(scope="module")
def done(spark, folder):
    return run.run(spark, folder)


def test_a21_captions_are_learned_and_generated_word_by_word(done, folder):
    assert done["loss"]["train"] < run.GOAL
    captions = [shapes.caption_of(label) for label in range(len(shapes.CLASSES))]
    assert [one.said for one in done["train"]] == captions
    assert (folder / "captions_train.png").read_bytes().startswith(b"\x89PNG")


def test_unseen_images_are_described(done):
    right = sum(one.said == shapes.caption_of(i) for i, one in enumerate(done["test"]))
    assert right >= 22, [one.said for one in done["test"]]  # 24 of 24 on the author's machine


def test_a21_word_by_word_prediction_equals_the_unrolled_net(done, folder):
    import caffe

    weights = str(folder / "work" / "lrcn.caffemodel")
    net = caffe.Net(str(folder / "lrcn_word_to_preds.prototxt"), weights, caffe.TEST)
    random, steps, rows = np.random.default_rng(0), 7, 24
    sentence = random.integers(0, 14, (steps, rows))
    features = random.standard_normal((rows, 24), dtype=np.float32)

    def likely(words, cont):
        for name in ("cont_sentence", "input_sentence"):
            net.blobs[name].reshape(*words.shape)
        net.blobs["input_sentence"].data[...] = words
        net.blobs["cont_sentence"].data[...] = cont
        net.blobs["image_features"].data[...] = features
        return net.forward()["probs"].copy()

    whole = likely(sentence, np.minimum(np.arange(steps), 1)[:, None])
    single = [likely(sentence[step : step + 1], min(step, 1)) for step in range(steps)]
    np.testing.assert_allclose(whole, np.concatenate(single), rtol=1e-5, atol=1e-6)
    assert whole.std() > 0.01  # the probabilities are not all alike
