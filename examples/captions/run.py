"""Image captions, from COCO's files to sentences: `python -m examples.captions`.

A CNN learns to classify shapes; CaffeOnSpark's converter turns images and captions into a
vocabulary and rows; an LRCN learns the captions, with the CNN's weights, and then generates
captions for the training and the test images. Needs the extras [caffe,spark,plot] and Pillow.
"""

from __future__ import annotations

import argparse
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from examples.captions import shapes
from examples.captions.captioner import Captioner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
GOAL = 0.05  # the loss on the captions that were learned
CAPTION_LENGTH = 10


class Captioned(NamedTuple):
    """An image file with its true and its generated caption."""

    file: Path
    truth: str
    said: str


@contextmanager
def _step(name: str) -> Iterator[None]:
    print(f"\n== {name}", flush=True)
    start = time.perf_counter()
    yield
    print(f"   {time.perf_counter() - start:.1f} s", flush=True)


def train_cnn(spark: SparkSession, work: Path, **flags: Any) -> str:
    """Trains and tests the CNN on the shapes; returns its model."""
    from hearth.caffeonspark import CaffeOnSpark, Config, DataSource

    model, solver = f"file:{work / 'cnn.caffemodel'}", str(work.parent / "cnn_solver.prototxt")
    conf = Config(spark, {"conf": solver, "model": model, **flags})
    cos, source = CaffeOnSpark(spark), DataSource(spark)
    cos.train(source.getSource(conf, True))
    means = cos.test(source.getSource(conf, False))
    print(f"   the CNN names {means['accuracy'][0]:.0%} of other shapes rightly")
    return model


def convert(spark: SparkSession, work: Path, split: str) -> list[str]:
    """Turns a set's captions into rows with the training set's vocabulary; returns its words."""
    from hearth.caffeonspark.tools.DFConversions import DFConversions
    from hearth.caffeonspark.tools.Vocab import Vocab

    coco, words = work / "coco", f"file:{work / 'coco' / 'words'}"
    conversions = DFConversions(spark)
    captions = conversions.Coco2ImageCaptionFile(f"file:{coco / split}.json", 2)
    if split == "train":
        vocab = Vocab(spark).genFromData(captions, "caption")
        vocab.save(words)
    else:
        vocab = Vocab(spark).load(words)
    rows = conversions.ImageCaption2Embedding(
        f"file:{coco / split}", captions, vocab, CAPTION_LENGTH
    )
    rows.write.parquet(f"file:{coco / split}-rows")
    print(f"   {split}: {len(vocab)} words: {' '.join(vocab.words)}")
    return vocab.words


def train_lrcn(spark: SparkSession, work: Path, weights: str, **flags: Any) -> Any:
    """Trains the captions' net from the CNN's weights; returns its Config."""
    from hearth.caffeonspark import CaffeOnSpark, Config, DataSource

    conf = Config(
        spark,
        {
            "conf": str(work.parent / "lrcn_solver.prototxt"),
            "model": f"file:{work / 'lrcn.caffemodel'}",
            "weights": weights,
            "features": "fc8",
            "label": "",
            **flags,
        },
    )
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    return conf


def loss_of(spark: SparkSession, conf: Any, work: Path, split: str) -> float:
    """The net's mean loss per word over the captions of a set."""
    from hearth.caffeonspark import CaffeOnSpark, DataSource

    rows = spark.read.parquet(f"file:{work / 'coco' / split}-rows").coalesce(1)
    means = CaffeOnSpark(spark).test(DataSource(spark).fromDataFrame(conf, rows, False))
    return means["cross_entropy_loss"][0]


def say(
    spark: SparkSession, conf: Any, work: Path, split: str, words: list[str]
) -> list[Captioned]:
    """Generates the captions of a set: executors compute fc8, the driver generates the words."""
    from hearth.caffeonspark import CaffeOnSpark, DataSource
    from hearth.caffeonspark.tools.DFConversions import DFConversions

    root, conversions = work / "coco" / split, DFConversions(spark)
    listed = conversions.Coco2ImageCaptionFile(f"file:{root}.json", 2).cache()
    seen = conversions.Image2Embedding(f"file:{root}", listed)
    features = CaffeOnSpark(spark).features(DataSource(spark).fromDataFrame(conf, seen, False))
    found = {row.SampleID: row.fc8 for row in features.collect()}
    rows = sorted(listed.collect(), key=lambda row: row.id)
    captioner = Captioner(
        str(work.parent / "lrcn_word_to_preds.prototxt"), str(work / "lrcn.caffemodel"), words
    )
    said = captioner.say([found[str(row.id)] for row in rows])
    return [
        Captioned(root / row.file, row.caption, sentence)
        for row, sentence in zip(rows, said, strict=True)
    ]


def show(captioned: list[Captioned], path: Path, columns: int = 6) -> None:
    """Plots the images with their generated captions; wrong ones are red."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = -(-len(captioned) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(2.3 * columns, 2.1 * lines))
    for axis in axes.flat:
        axis.axis("off")
    for axis, one in zip(axes.flat, captioned, strict=False):
        axis.imshow(pyplot.imread(one.file))
        colour = "black" if one.said == one.truth else "crimson"
        axis.set_title(one.said, fontsize=8, color=colour)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def run(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Runs in `folder`; returns `loss` (by set), `train` and `test` (lists of Captioned)."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)  # Spark does not overwrite folders
    with _step("drawing images, as COCO's files and for the CNN"):
        shapes.write_all(work)
    if folder.resolve() != HERE:
        for file in HERE.glob("*.prototxt"):
            shutil.copy(file, folder)
    with _step("the CNN learns to classify shapes, on 2 executors"):
        weights = train_cnn(spark, work, clusterSize=2)
    with _step("captions become a vocabulary and rows"):
        words = convert(spark, work, "train")
        convert(spark, work, "test")
    with _step("the LRCN learns the captions, on 2 executors"):
        conf = train_lrcn(spark, work, weights, clusterSize=2)
        loss = {split: loss_of(spark, conf, work, split) for split in ("train", "test")}
        print(f"   loss {loss['train']:.4f} on what it learned, {loss['test']:.4f} on the others")
    done: dict[str, Any] = {"loss": loss}
    with _step("captions, word by word"):
        for split in ("train", "test"):
            done[split] = say(spark, conf, work, split, words)
            right = sum(one.said == one.truth for one in done[split])
            print(f"   {split}: {right} of {len(done[split])} as they were written")
            show(done[split], folder / f"captions_{split}.png")
    return done


def main() -> int:
    """Runs the job; the exit status is 1 if the net has not learned its captions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE, help="for what it writes")
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    from hearth.spark import session

    start = time.perf_counter()
    spark = session.start("captions", executors=2)
    try:
        done = run(spark, folder)
    finally:
        spark.stop()
    wrong = sum(one.said != one.truth for one in done["train"])
    print(f"\n{folder}/captions_test.png shows the captions of unseen images")
    print(f"all in {time.perf_counter() - start:.0f} s")
    if done["loss"]["train"] >= GOAL or wrong:
        print(f"captions: loss {done['loss']['train']:.4f}, {wrong} captions are wrong")
        return 1
    return 0
