"""Converts COCO's captions to a vocabulary and an embedding and back, in the form a net reads."""

import json

import pytest

from hearth.caffeonspark import FlagError
from hearth.caffeonspark.flags import parse_flags
from hearth.caffeonspark.tools import (
    CocoDataSetConverter,
    Embedding2Caption,
    Image2Embedding,
    captions,
    program,
)
from hearth.caffeonspark.tools.DFConversions import DFConversions
from hearth.caffeonspark.tools.Vocab import Vocab

SENTENCES = [
    "A butterfly sits on a yellow flower.",
    "A dog, a cat and a bird look at the butterfly",
    "The dog runs.",
]
LENGTH = 10


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    """A folder with images and two files in COCO's format: with captions and without."""
    folder = tmp_path_factory.mktemp("coco")
    images = []
    for i in range(2):
        (folder / f"COCO_{i}.jpg").write_bytes(b"image %d" % i)
        size = {"height": 30 + i, "width": 40 + i}
        images.append({"id": 70 + i, "file_name": f"COCO_{i}.jpg", "coco_url": f"u/{i}", **size})
    notes = [
        {"id": 900 + i, "image_id": 70 + i % 2, "caption": text} for i, text in enumerate(SENTENCES)
    ]
    (folder / "coco.json").write_text(json.dumps({"images": images, "annotations": notes}))
    (folder / "test.json").write_text(json.dumps({"images": images}))
    return folder


@pytest.fixture(scope="module")
def rows(spark, coco):
    return DFConversions(spark).Coco2ImageCaptionFile(f"file:{coco}/coco.json", 2)


def test_a20_captions_have_their_images(rows):
    assert rows.rdd.getNumPartitions() == 2
    found = {row.id: row for row in rows.collect()}
    assert {number: row.caption for number, row in found.items()} == {
        900 + i: text for i, text in enumerate(SENTENCES)
    }
    assert tuple(found[901])[1:5] == (31, 41, "COCO_1.jpg", "u/1")


def test_a_vocabulary_has_the_most_used_words_first(spark, rows, tmp_path):
    vocab = Vocab(spark).genFromData(rows, "caption", -1)
    assert vocab.words[:4] == ["UNK", "a", "butterfly", "dog"]  # the words occur 5, 2 and 2 times
    assert vocab.ids["UNK"] == 1 and vocab.ids["butterfly"] == 3 and "." not in vocab.ids
    assert len(Vocab(spark).genFromData(rows, "caption", 4)) == 5
    vocab.save(f"file:{tmp_path}/words")
    assert Vocab(spark).load(f"file:{tmp_path}/words").words == vocab.words
    (tmp_path / "other").write_text("a\nb\n")
    with pytest.raises(FlagError, match="its first line is not UNK"):
        Vocab(spark).load(f"file:{tmp_path}/other")


def test_a20_captions_become_numbers_and_captions_again(spark, coco, rows):
    conversions, vocab = DFConversions(spark), Vocab(spark).genFromData(rows, "caption", -1)
    embedded = conversions.ImageCaption2Embedding(f"file:{coco}", rows, vocab, LENGTH)
    assert dict(embedded.dtypes)["target_sentence"] == "array<int>"
    texts = {str(row.id): row.caption for row in rows.collect()}
    for column in ("input_sentence", "target_sentence"):
        said = conversions.Embedding2Caption(embedded, vocab, column, "said").collect()
        short = {number: captions.words_of(text)[: LENGTH - 1] for number, text in texts.items()}
        assert {row.id: row.said.split() for row in said} == short
    row = next(row for row in embedded.collect() if row.id == "902")
    assert (row.data.height, row.data.width, bytes(row.data.image)) == (30, 40, b"image 0")
    the, dog, runs = (vocab.ids[word] for word in ("the", "dog", "runs"))
    assert row.input_sentence == [0, the, dog, runs] + [-1] * 6
    assert row.cont_sentence == [0, 1, 1, 1] + [-1] * 6
    assert row.target_sentence == [the, dog, runs, 0] + [-1] * 6


def test_a_sentence_that_is_too_long_is_cut():
    ids = {"a": 2, "b": 3}
    full = captions.embed("a b c b a.", ids, 4)
    assert full == ([0, 2, 3, 1], [0, 1, 1, 1], [2, 3, 1, 0])
    assert captions.embed("", ids, 3) == ([0, -1, -1], [0, -1, -1], [0, -1, -1])
    with pytest.raises(ValueError, match="word number 4 is outside a vocabulary of 3 words"):
        captions.caption([4], ["UNK", "a", "b"])


def test_images_without_captions_are_converted_alone(spark, coco):
    conversions = DFConversions(spark)
    images = conversions.Coco2ImageCaptionFile(f"file:{coco}/test.json", 1)
    assert sorted(row.id for row in images.collect()) == [70, 71]
    embedded = conversions.Image2Embedding(str(coco), images)
    assert embedded.columns == ["id", "data", "label"] and embedded.count() == 2


@pytest.mark.parametrize(
    "text", ["", "[]", '{"images": [{"id": 1}]}', '{"images": [], "annotations": [{"id": 1}]}', "{"]
)
def test_an_invalid_captions_file_is_refused(spark, tmp_path, text):
    (tmp_path / "coco.json").write_text(text)
    with pytest.raises(FlagError, match=r"coco.json is not a file of COCO captions: \w+"):
        DFConversions(spark).Coco2ImageCaptionFile(f"file:{tmp_path}/coco.json", 1)


def flags(**given):
    return parse_flags([f"-{flag}={value}" for flag, value in given.items()], program.DEFAULTS)


def test_a20_the_converter_makes_all_and_keeps_a_training_sets_words(spark, coco, tmp_path):
    output = f"file:{tmp_path}/out"
    given = {"captionFile": f"file:{coco}/coco.json", "imageRoot": coco, "captionLength": LENGTH}
    folders = {"imageCaptionDFDir": "captions", "vocabDir": "words", "embeddingDFDir": "rows"}
    said = CocoDataSetConverter.convert(spark, flags(**given, output=output, **folders))
    assert said == f"3 captions with 16 words written to {output}"
    again = {**folders, "embeddingDFDir": "again"}
    Image2Embedding.convert(spark, flags(**given, output=output, **again))
    first, second = (spark.read.parquet(f"{output}/{name}") for name in ("rows", "again"))
    assert sorted(first.toJSON().collect()) == sorted(second.toJSON().collect())
    with pytest.raises(FlagError, match="captions already exists"):
        CocoDataSetConverter.convert(spark, flags(**given, output=output, **folders))
    few = next(path for path in (tmp_path / "out/words").glob("part-*"))
    few.write_text("UNK\ndog\n")
    (tmp_path / "out/words" / f".{few.name}.crc").unlink(missing_ok=True)
    test_set = {"imageCaptionDFDir": "captions2", "vocabDir": "words", "embeddingDFDir": "rows2"}
    said = CocoDataSetConverter.convert(spark, flags(**given, output=output, **test_set))
    assert said.startswith("3 captions with 2 words")
    back = {"imageCaptionDFDir": "said", "vocabDir": "words", "embeddingDFDir": "rows2"}
    Embedding2Caption.convert(spark, flags(output=output, **back))
    texts = {row.id: row.caption for row in spark.read.json(f"{output}/said").collect()}
    assert texts["902"] == "UNK dog UNK"
