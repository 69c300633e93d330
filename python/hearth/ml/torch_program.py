"""What TorchEstimator's nodes and TorchModel's tasks run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.spark.ml_stage import unpickled

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Training:
    """A training, as it travels to the nodes. `program`: a pickled (model, loss, optimizer)."""

    program: str
    inputs: tuple[str, ...]
    label: str
    batch_size: int
    learning_rate: float
    seed: int


def train(spec: Training, ctx: Any) -> None:
    """Runs on every rank; rank 0 gives {"state": a state_dict, "kind": dtype, "depth": dims}."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from hearth.torch import in_step, returned

    make_model, loss_of, make_optimizer = unpickled(spec.program)
    dist.init_process_group(ctx.backend)
    torch.manual_seed(spec.seed)
    model = make_model().to(ctx.device)
    kind = _float_kind(model)
    parallel = DistributedDataParallel(model)
    optimizer = make_optimizer(parallel.parameters(), lr=spec.learning_rate)
    output: dict[str, Any] = {}
    named = [*spec.inputs, spec.label]
    for step, ((*inputs, label), weight) in enumerate(in_step(_minibatches(spec, ctx))):
        optimizer.zero_grad()
        placed = [_placed(x, ctx.device, kind, n) for x, n in zip(inputs, named, strict=False)]
        found = parallel(*placed)
        _check_output(found, len(label))
        output = {"kind": str(found.dtype).removeprefix("torch."), "depth": found.dim() - 1}
        loss = loss_of(found, label.to(ctx.device))
        _check_loss(loss, step)
        (loss * weight).backward()
        optimizer.step()
        ctx.report(step=step + 1, loss=loss)
    if ctx.rank == 0 and output:
        state = {name: value.cpu() for name, value in model.state_dict().items()}
        returned.give(ctx, {"state": state, **output})
    dist.destroy_process_group()


def _check_loss(loss: Any, step: int) -> None:
    if loss.dim():
        raise ValueError(
            f"the loss has shape {tuple(loss.shape)}: it must be one number, the mean over "
            "the rows of a minibatch"
        )
    if not loss.isfinite():
        raise ValueError(
            f"the loss is {loss.item()} in step {step}, so the weights would become NaN: lower "
            "learningRate, scale the inputs, or look for NaN and infinity in the columns"
        )


def _minibatches(spec: Training, ctx: Any) -> Iterator[tuple[Any, ...]]:
    columns = (*spec.inputs, spec.label)
    feed = ctx.get_data_feed()
    for batch in feed.as_iterable_dataset(spec.batch_size, columns):
        yield tuple(_as_tensor(part, name) for part, name in zip(batch, columns, strict=True))


def _as_tensor(values: Any, name: str) -> Any:
    """A tensor of a column: bytes of one length as uint8 [rows, length]. Raises ValueError."""
    import numpy as np
    import torch

    if isinstance(values, torch.Tensor):
        return values
    lengths = {len(v) if isinstance(v, bytes | bytearray | memoryview) else -1 for v in values}
    if len(lengths) == 1 and min(lengths) >= 0:
        flat = np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1)
        return torch.from_numpy(flat.copy())
    if -1 in lengths:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise ValueError(
            f"column {name!r} has values of type {kinds}, which make no tensor: take columns of "
            "numbers, arrays, vectors or bytes (StringIndexer makes numbers of strings)"
        )
    raise ValueError(
        f"column {name!r} has bytes of different lengths ({sorted(lengths)[:4]}), which make no "
        "tensor: decode or pad them in Spark"
    )


def _float_kind(model: Any) -> Any:
    """The type of the model's weights, which inputs of floating point get, too."""
    import torch

    kinds = (value.dtype for value in model.parameters() if value.is_floating_point())
    return next(kinds, torch.float32)


def _placed(tensor: Any, device: Any, kind: Any, name: str) -> Any:
    """On the device, floats in the type `kind`. Raises ValueError where it cannot hold one."""
    if not tensor.is_floating_point() or tensor.dtype == kind:
        return tensor.to(device)
    placed = tensor.to(device, kind)
    lost = placed.isinf().to(tensor.device) & tensor.isfinite()
    if lost.any():
        raise ValueError(
            f"the column {name!r} has the value {tensor[lost][0].item()}, which the model's "
            f"{kind} cannot hold ({int(lost.sum())} of {lost.numel()} values of a minibatch): "
            "scale the column"
        )
    return placed


def _check_output(found: Any, rows: int) -> None:
    import torch

    if not isinstance(found, torch.Tensor):
        raise ValueError(
            f"the model gives a {type(found).__name__}: it must give one tensor, whose first "
            "dimension is the rows"
        )
    if found.dim() == 0 or len(found) != rows:
        raise ValueError(
            f"the model gives shape {tuple(found.shape)} for {rows} rows: its first dimension "
            "must be the rows"
        )


@dataclass(frozen=True)
class Prediction:
    """A trained model, as it travels to the tasks.

    `key` tells models apart; `inputs`: names for messages; `read`: the columns with their values.
    """

    key: str
    program: str
    state: bytes
    inputs: tuple[str, ...]
    read: tuple[str, ...]
    keep: tuple[str, ...]
    output: str
    kind: str
    batch_size: int


_loaded: dict[str, Any] = {}  # by the model's key


def _model(spec: Prediction) -> Any:
    """The model, kept by this worker; another one takes its place."""
    from hearth.torch import returned

    if spec.key not in _loaded:
        _loaded.clear()
        model = unpickled(spec.program)[0]()
        model.load_state_dict(returned.loaded(spec.state))
        _loaded[spec.key] = model.eval()
    return _loaded[spec.key]


def predict(spec: Prediction, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of transform(): a minibatch never crosses an Arrow batch."""
    import pyarrow as pa
    import torch

    from hearth.rows.dense_arrays import dense_array
    from hearth.rows.results import to_arrow
    from hearth.torch.datasets import as_tensor

    model = _model(spec)
    cpu, kind = torch.device("cpu"), _float_kind(model)
    for batch in batches:
        for start in range(0, batch.num_rows, spec.batch_size):
            rows = batch.slice(start, spec.batch_size)
            inputs = []
            for name, read in zip(spec.inputs, spec.read, strict=True):
                values = as_tensor(dense_array(rows.column(read), name), name)
                inputs.append(_placed(_as_tensor(values, name), cpu, kind, name))
            with torch.inference_mode():
                found = model(*inputs)
            _check_output(found, rows.num_rows)
            # numpy has no bfloat16.
            found = found.float() if spec.kind == "bfloat16" else found
            arrays = [*(rows.column(name) for name in spec.keep), to_arrow(found.numpy())]
            yield pa.RecordBatch.from_arrays(arrays, names=[*spec.keep, spec.output])
