"""pycaffe's Net: a network whose blobs and parameters are NumPy views of the engine's memory."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hearth.caffe.modes import TEST, next_seed, phase_name
from hearth.errors import invalid
from hearth.native import _caffe

__all__ = ["Net"]

Arrays = dict[str, np.ndarray]


class Net:
    """A network built from a prototxt file. Not thread-safe; running it releases the GIL.

    Attributes:
        blobs: OrderedDict of Blob by name. `blob.data` and `blob.diff` are float32 views.
        params: OrderedDict of each layer's parameters, `params["conv1"][0]` being the weights.
        layers: the layers; Python layers are your objects.
        layer_dict: the layers by name.
        inputs, outputs: names of the input blobs, and of blobs that no layer reads.
        top_names, bottom_names: names of a layer's blobs, by layer name.
        blob_loss_weights: each blob's weight in the loss.
    """

    def __init__(
        self,
        network_file: str | os.PathLike[str],
        phase: Any = TEST,
        level: int = 0,
        stages: Sequence[str] | None = None,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        """Builds the net, and loads `weights` (a .caffemodel) if given.

        Args:
            network_file: path or URI of the prototxt.
            phase: caffe.TRAIN or caffe.TEST. The old order Net(file, weights, phase) works too.
            level, stages: the NetState for include and exclude rules.

        Raises:
            ValueError: "file:line:column: ..." or the name of the invalid layer.
            FileNotFoundError: a file does not exist.
        """
        if isinstance(phase, (str, os.PathLike)) and phase not in ("TRAIN", "TEST"):
            weights, phase, level = phase, level, 0
        native = _caffe.Net.read(
            os.fspath(network_file), phase_name(phase), level, list(stages or []), next_seed()
        )
        self._attach(native)
        if weights is not None:
            self.copy_from(weights)

    @classmethod
    def of(cls, native: _caffe.Net) -> Net:
        """Wraps a net that a solver owns."""
        net = cls.__new__(cls)
        net._attach(native)
        return net

    def _attach(self, native: _caffe.Net) -> None:
        self._native = native
        self.blobs: OrderedDict[str, _caffe.Blob] = OrderedDict(native.blobs)
        self.params: OrderedDict[str, _caffe.BlobVec] = OrderedDict(native.params)
        self.inputs: list[str] = list(native.inputs)
        self.outputs: list[str] = list(native.outputs)
        self.layers: list[Any] = native.layer_objects
        self._layer_names: list[str] = list(native.layer_names)
        self._blob_names: list[str] = list(self.blobs)
        self.layer_dict = OrderedDict(zip(self._layer_names, self.layers, strict=True))
        self.top_names = OrderedDict((layer["name"], layer["tops"]) for layer in native.layers)
        self.bottom_names = OrderedDict(
            (layer["name"], layer["bottoms"]) for layer in native.layers
        )
        self.blob_loss_weights = OrderedDict(native.loss_weights)

    @property
    def name(self) -> str:
        """The net's name in the prototxt."""
        return self._native.name

    # ---- running ----

    def forward(
        self,
        blobs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **kwargs: Any,
    ) -> Arrays:
        """Runs the layers from `start` to `end`, inclusive (default: all).

        Args:
            blobs: names of blobs to return in addition to the outputs.
            start, end: layer names.
            kwargs: arrays for all inputs, by name, each with its blob's shape.

        Returns:
            Views, by name, of the outputs (with `end`: of that layer's tops) and of `blobs`.
        """
        first = 0 if start is None else self._layer_index(start)
        last = -1 if end is None else self._layer_index(end)
        wanted = [*(self.outputs if end is None else self.top_names[end]), *(blobs or [])]
        if kwargs:
            self._fill(kwargs, self.inputs, "data")
        self._native.forward(first, last)
        return {name: self.blobs[name].data for name in wanted}

    def backward(
        self,
        diffs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **kwargs: Any,
    ) -> Arrays:
        """Runs backward from layer `start` down to `end`, inclusive (default: all).

        Adds to the parameters' diffs: see `clear_param_diffs`.

        Args:
            diffs: names of blobs whose diffs to return in addition to the inputs'.
            start, end: layer names.
            kwargs: diffs of all outputs, by name; default: the loss weights.

        Returns:
            Views, by name, of the diffs of the inputs (with `end`: of that layer's bottoms) and of
            `diffs`.
        """
        first = -1 if start is None else self._layer_index(start)
        last = 0 if end is None else self._layer_index(end)
        wanted = [*(self.inputs if end is None else self.bottom_names[end]), *(diffs or [])]
        if kwargs:
            self._fill(kwargs, self.outputs, "diff")
        self._native.backward(first, last)
        return {name: self.blobs[name].diff for name in wanted}

    def forward_all(self, blobs: Sequence[str] | None = None, **kwargs: Any) -> Arrays:
        """Runs any number of items through the net, batch by batch.

        Args:
            blobs: names of blobs to return in addition to the outputs.
            kwargs: arrays for all inputs, by name: (items, ...).

        Returns:
            Copies by name, one row per item; one value per batch for blobs without a batch axis.
        """
        runs = [self._copies(self.forward(blobs, **batch)) for batch in self._batch(kwargs)]
        return self._joined(runs, _item_count(kwargs))

    def forward_backward_all(
        self, blobs: Sequence[str] | None = None, diffs: Sequence[str] | None = None, **kwargs: Any
    ) -> tuple[Arrays, Arrays]:
        """Runs forward and backward over any number of items, batch by batch.

        Args:
            blobs, diffs: names to return in addition to the outputs' data and the inputs' diffs.
            kwargs: arrays for all inputs and, optionally, diffs for all outputs: (items, ...).

        Returns:
            (data, diffs) by name, like forward_all.
        """
        forward_runs, backward_runs = [], []
        for batch in self._batch(kwargs):
            data = {name: batch[name] for name in self.inputs if name in batch}
            top_diffs = {name: batch[name] for name in self.outputs if name in batch}
            forward_runs.append(self._copies(self.forward(blobs, **data)))
            backward_runs.append(self._copies(self.backward(diffs, **top_diffs)))
        items = _item_count(kwargs)
        return self._joined(forward_runs, items), self._joined(backward_runs, items)

    def reshape(self) -> None:
        """Recomputes the shapes of all blobs from the inputs' current shapes."""
        self._native.reshape()

    def clear_param_diffs(self) -> None:
        """Sets all parameters' diffs to 0."""
        self._native.clear_param_diffs()

    def set_input_arrays(self, data: Any, labels: Any) -> None:
        """Sets the items of the MemoryData layer: data (n, channels, height, width), labels (n,).

        They are copied as float32. n must be a multiple of the batch size.
        """
        self._native.set_input_arrays(
            np.ascontiguousarray(data, np.float32), np.ascontiguousarray(labels, np.float32)
        )

    def before_forward(self, call: Callable[[int], Any]) -> None:
        """Registers call(layer_index) to run before every layer's forward."""
        self._on("before_forward", call)

    def after_forward(self, call: Callable[[int], Any]) -> None:
        """Registers call(layer_index) to run after every layer's forward."""
        self._on("after_forward", call)

    def before_backward(self, call: Callable[[int], Any]) -> None:
        """Registers call(layer_index) to run before every layer's backward."""
        self._on("before_backward", call)

    def after_backward(self, call: Callable[[int], Any]) -> None:
        """Registers call(layer_index) to run after every layer's backward."""
        self._on("after_backward", call)

    # ---- weights ----

    def copy_from(self, weights: str | os.PathLike[str]) -> None:
        """Loads weights from a .caffemodel (or .h5) file, for layers of the same names."""
        self._native.copy_from(os.fspath(weights))

    def share_with(self, other: Net) -> None:
        """Uses the other net's weights, without a copy, for layers of the same names."""
        self._native.share_with(other._native)

    def save(self, filename: str | os.PathLike[str]) -> None:
        """Writes the net and its weights as a .caffemodel file."""
        self._native.save(os.fspath(filename))

    def save_hdf5(self, filename: str | os.PathLike[str], write_diff: bool = False) -> None:
        """Writes the weights as HDF5, optionally with their diffs."""
        self._native.save_hdf5(os.fspath(filename), write_diff)

    def load_hdf5(self, filename: str | os.PathLike[str]) -> None:
        """Loads weights from an HDF5 file, for layers of the same names."""
        self._native.load_hdf5(os.fspath(filename))

    _set_input_arrays = set_input_arrays

    # ---- internals, under pycaffe's names, for programs that inspect nets ----

    @property
    def _blobs(self) -> list[_caffe.Blob]:
        return list(self.blobs.values())

    @property
    def _inputs(self) -> list[int]:
        """The input blobs, as indices of _blobs and _blob_names."""
        return self._indices(self.inputs)

    @property
    def _outputs(self) -> list[int]:
        return self._indices(self.outputs)

    def _bottom_ids(self, layer: int) -> list[int]:
        """The blobs that a layer reads, as indices of _blobs."""
        return self._indices(self._native.layers[layer]["bottoms"])

    def _top_ids(self, layer: int) -> list[int]:
        return self._indices(self._native.layers[layer]["tops"])

    @property
    def _blob_loss_weights(self) -> list[float]:
        """The loss weight of each of _blobs."""
        return list(self.blob_loss_weights.values())

    def _indices(self, names: Sequence[str]) -> list[int]:
        return [self._blob_names.index(name) for name in names]

    def _forward(self, start: int, end: int) -> float:
        """Runs layers by index, inclusive; returns the sum of their losses."""
        return self._native.forward(start, end)

    def _backward(self, start: int, end: int) -> None:
        """Runs backward from layer `start` down to `end`, by index."""
        self._native.backward(start, end)

    def _on(self, event: str, call: Callable[[int], Any]) -> None:
        self._native.add_layer_callback(event, call)

    def _layer_index(self, name: str) -> int:
        try:
            return self._layer_names.index(name)
        except ValueError:
            raise invalid(
                f"the net has no layer {name!r}; it has {', '.join(self._layer_names)}"
            ) from None

    def _fill(self, arrays: Mapping[str, Any], names: Sequence[str], part: str) -> None:
        """Copies `arrays`, whose names must be `names`, into the blobs' data or diff."""
        if set(arrays) != set(names):
            raise invalid(
                f"arrays were passed for {sorted(arrays)}, but {sorted(names)} are needed"
            )
        for name, array in arrays.items():
            target = getattr(self.blobs[name], part)
            if np.shape(array)[:1] != target.shape[:1]:
                raise invalid(
                    f"the blob {name} has the shape {target.shape}, but its array has "
                    f"{np.shape(array)}: reshape the blob, or use forward_all for other numbers of "
                    "items"
                )
            target[...] = array

    def _batch(self, arrays: Mapping[str, Any]) -> Iterator[Arrays]:
        """Splits arrays of many items into batches; pads the last batch with zeros."""
        size = next(iter(self.blobs.values())).shape[0]
        for begin in range(0, _item_count(arrays), size):
            batch = {}
            for name, array in arrays.items():
                part = np.asarray(array[begin : begin + size], np.float32)
                batch[name] = np.zeros((size, *part.shape[1:]), np.float32)
                batch[name][: len(part)] = part
            yield batch

    def _copies(self, views: Arrays) -> Arrays:
        return {name: np.atleast_1d(view.copy()) for name, view in views.items()}

    def _joined(self, runs: Sequence[Arrays], items: int) -> Arrays:
        size = next(iter(self.blobs.values())).shape[0]
        joined = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
        return {
            name: array[:items] if len(runs[0][name]) == size else array
            for name, array in joined.items()
        }


def _item_count(arrays: Mapping[str, Any]) -> int:
    counts = {len(array) for array in arrays.values()}
    if len(counts) != 1 or counts == {0}:
        raise invalid(f"all inputs need the same number of items, found {sorted(counts)}")
    return counts.pop()
