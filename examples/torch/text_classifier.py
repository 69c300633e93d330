"""A text classifier from a DataFrame of strings; Spark SQL computes its vocabulary, or a tokenizer
of the package `tokenizers` is trained on the strings.

python examples/torch/text_classifier.py [--bpe]
"""

from __future__ import annotations

import argparse
import json
import tempfile

from hearth.spark import session as spark_session
from hearth.torch import TorchCluster


def main_fun(args, ctx):
    """Trains a classifier on the mean of the vectors of words, or of parts of words."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    words_of, count = numbering(args)

    def tokens(batch):
        # Strings reach map= as lists; it runs in the loader's threads.
        texts, labels = batch
        words = words_of(texts)
        lengths = torch.tensor([0] + [len(each) for each in words])
        flat = torch.tensor([number for each in words for number in each])
        return flat, lengths.cumsum(0)[:-1], labels

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(make_model(count, args.width))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.rate)
    train = ctx.dataset("train", args.batch_size, ("text", "label"), map=tokens, workers=2)
    for _ in range(args.epochs):
        for flat, starts, label in train:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(flat, starts), label).backward()
            optimizer.step()

    right = rows = 0
    model.eval()
    for flat, starts, label in ctx.dataset("test", 64, ("text", "label"), False, map=tokens):
        right += int((model(flat, starts).argmax(1) == label).sum())
        rows += len(label)
    found = ctx.reduce_metrics({"accuracy": right / rows}, weight=rows)
    if ctx.rank == 0:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.destroy_process_group()


def numbering(args):
    """Returns a function from texts to lists of token numbers, and the number of tokens."""
    if args.bpe:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(args.tokenizer)
        return (
            lambda texts: [found.ids for found in tokenizer.encode_batch(texts)],
            tokenizer.get_vocab_size(),
        )
    known = args.vocabulary
    return (
        lambda texts: [[known.get(word, 0) for word in text.lower().split()] for text in texts],
        len(known) + 1,
    )


def make_model(words: int, width: int):
    """Mean of word vectors, and a linear layer."""
    from torch import nn

    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.last = nn.EmbeddingBag(words, width), nn.Linear(width, 2)

        def forward(self, flat, starts):
            return self.last(self.words(flat, starts))

    return Bag()


def vocabulary(frame, size: int) -> dict[str, int]:
    """Numbers the most frequent words from 1; ties in alphabetical order."""
    words = frame.selectExpr("explode(split(lower(trim(text)), r'\\s+')) word")
    most = words.groupBy("word").count().orderBy("count", "word", ascending=[False, True])
    return {row.word: number for number, row in enumerate(most.limit(size).collect(), 1)}


def trained_tokenizer(texts, size: int) -> str:
    """Trains a byte-pair tokenizer of `size` tokens and returns it as text.

    `texts`: an iterable of strings.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.to_str()


def frames(spark, rows: int):
    """Sentences on weather (label 0) or trade (label 1). A sentence's number determines whether it
    is for training."""
    weather = "rain wind snow cloud storm frost fog sun hail thunder"
    trade = "price bank market share loan profit tax bond trade coin"
    common = "the a of today again north report says more less"

    def word(words, position):
        return f"element_at(split('{words}', ' '), pmod(hash(id, {position}), 10) + 1)"

    topic = [f"if(label = 1, {word(trade, n)}, {word(weather, n)})" for n in (1, 2)]
    parts = ", ".join([word(common, 3), topic[0], word(common, 4), topic[1], word(common, 5)])
    whole = (
        spark.range(0, rows, 1, 4)
        .selectExpr("id", "bigint(pmod(hash(id), 2)) label")
        .selectExpr("id", "label", f"concat_ws(' ', {parts}) text")
    )
    return whole.where("id % 5 > 0"), whole.where("id % 5 = 0")


def run(spark, args) -> float:
    """Trains; returns the accuracy on held-out sentences."""
    train, test = frames(spark, args.rows)
    if args.bpe:
        texts = (row.text for row in train.select("text").toLocalIterator())
        args.tokenizer = trained_tokenizer(texts, args.words)
    else:
        args.vocabulary = vocabulary(train, args.words)
    datasets = {"train": train, "test": test}
    TorchCluster.run(spark, main_fun, args, args.workers, datasets=datasets).shutdown()
    with open(args.report, encoding="utf-8") as file:
        return json.load(file)["accuracy"]


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--words", type=int, default=1000, help="size of the vocabulary")
    parser.add_argument("--bpe", action="store_true", help="a tokenizer of the package tokenizers")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--report", default=tempfile.gettempdir() + "/text_classifier.json")
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("text-classifier", executors=2)
    print(f"accuracy: {run(session, parse()):.3f}")
