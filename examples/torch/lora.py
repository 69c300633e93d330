"""LoRA: small matrices added to the frozen layers of a transformer, with FSDP2, from a DataFrame.

python examples/torch/lora.py --report /tmp/lora.json
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec

from hearth.spark import session as spark_session
from hearth.torch import TorchCluster

LETTERS = 12


def main_fun(args, ctx):
    """Trains the adapters; the other parameters stay fixed, in shards on all ranks."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model, blocks = by_peft(args.rank) if args.peft else by_hand(args.rank)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for block in blocks:
        fully_shard(block)
    fully_shard(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=args.rate)
    loader = ctx.dataset("train", args.batch_size, ("tokens",))
    for epoch in range(1, args.epochs + 1):
        for (tokens,) in loader:
            optimizer.zero_grad()
            loss = loss_of(model, tokens)
            loss.backward()
            optimizer.step()
        if args.checkpoints:
            kept = {"model": model, "optimizer": optimizer, "data": loader}
            ctx.checkpoint(epoch, folder=args.checkpoints, background=True, **kept)
    found = ctx.reduce_metrics({"loss": loss})
    whole = {name: p.full_tensor().detach() for name, p in model.named_parameters()}
    changed = [name for name in whole if not torch.equal(whole[name], before[name])]
    if ctx.rank == 0:
        found |= {"changed": changed, "trained": sum(whole[name].numel() for name in changed)}
        found |= {"all": sum(p.numel() for p in whole.values())}
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.destroy_process_group()


def loss_of(model, tokens):
    """The loss of predicting each letter from the letters before it."""
    import torch

    scores = model(tokens[:, :-1])
    scores = getattr(scores, "logits", scores)  # a transformers model returns more than the logits
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


def by_peft(rank: int):
    """A causal language model of transformers with peft's adapters, and its blocks. Use
    from_pretrained() here to load a published model."""
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    small = {"hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    whole = LlamaForCausalLM(LlamaConfig(vocab_size=LETTERS, **small, **heads))
    layers = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "lm_head"]
    config = LoraConfig(r=rank, lora_alpha=4 * rank, target_modules=layers, task_type="CAUSAL_LM")
    return get_peft_model(whole, config), whole.model.layers


def by_hand(rank: int):
    """The same model without these packages."""
    model = make_model()
    add_adapters(model, rank)
    return model, model.blocks


def make_model(width: int = 32, blocks: int = 2):
    """A small causal language model."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.last_norm = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query_key_value = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = self.query_key_value(self.norm(x)).chunk(3, -1)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen)
            return x + self.down(nn.functional.gelu(self.up(self.last_norm(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters = nn.Embedding(LETTERS, width)
            self.positions = nn.Embedding(64, width)
            self.blocks = nn.ModuleList(Block() for _ in range(blocks))
            self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, LETTERS)

        def forward(self, tokens):
            x = self.letters(tokens) + self.positions(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.scores(self.norm(x))

    return Model()


def add_adapters(model, rank: int) -> None:
    """Freezes the model, and adds the product of two thin matrices to each linear layer of its
    blocks and to its last one. The second matrix is 0, so the outputs are unchanged at first."""
    import torch
    from torch import nn

    class Adapted(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer
            self.lora_in = nn.Parameter(torch.randn(rank, layer.in_features) / rank)
            self.lora_out = nn.Parameter(torch.zeros(layer.out_features, rank))

        def forward(self, x):
            return self.layer(x) + x @ self.lora_in.T @ self.lora_out.T

    model.requires_grad_(False)
    for holder in [model, *model.blocks]:
        for name, layer in list(holder.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(holder, name, Adapted(layer))


def frame(spark, rows: int):
    """Texts in which each letter is two positions after the letter before it."""
    letters = f"transform(sequence(0, 9), n -> bigint((n * 2 + pmod(hash(id), 1000)) % {LETTERS}))"
    return spark.range(0, rows, 1, 4).selectExpr(f"{letters} tokens")


def run(spark, args) -> dict:
    """Trains; returns the last loss, and which parameters have changed."""
    datasets = {"train": frame(spark, args.rows)}
    TorchCluster.run(spark, main_fun, args, args.workers, datasets=datasets).shutdown()
    with open(args.report, encoding="utf-8") as file:
        return json.load(file)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", required=True, help="file for what was found")
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--checkpoints", default="", help="folder or URI; empty: none are made")
    parser.add_argument(
        "--peft",
        action=argparse.BooleanOptionalAction,
        default=bool(find_spec("peft") and find_spec("transformers")),
        help="adapters of peft in a model of transformers; by default where they are installed",
    )
    parser.add_argument("--rank", type=int, default=4, help="of the added matrices")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.02)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("lora", executors=2)
    print(run(session, parse()))
