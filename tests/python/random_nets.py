"""Random nets in Caffe's prototxt, and their float64 results by PyTorch."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import torch
from torch.nn import functional as F

# Computes a layer's top from its bottoms and parameters, all of them float64 tensors.
Function = Callable[..., torch.Tensor]


class RandomNet:
    """A chain of layers with some branches, from the Input `x` to the blob `out`.

    `text` is the prototxt. `forward` computes `out` from x and each layer's parameters.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.shape = (
            self.random.randint(1, 3),
            self.random.choice([1, 3, 4, 16, 17, 33]),
            self.random.randint(5, 14),
            self.random.randint(5, 14),
        )
        self._lines = [
            "force_backward: true",
            'layer { name: "x" type: "Input" top: "x" '
            f"input_param {{ {shape_text(self.shape)} }} }}",
        ]
        self._steps: list[tuple[str, list[str], str, Function]] = []
        self._shapes = {"x": self.shape}
        self._count = 0
        blob = self._convolution("x")
        for _ in range(self.random.randint(1, 5)):
            blob = self.random.choice(CHOICES)(self, blob)
        self.out = self._convolution(blob) if self.random.random() < 0.5 else blob
        self.text = "\n".join(self._lines)

    def forward(
        self, x: torch.Tensor, parameters: dict[str, list[torch.Tensor]]
    ) -> dict[str, torch.Tensor]:
        """Returns all blobs; a blob that layers modify in place has its final values."""
        blobs = {"x": x}
        for name, bottoms, top, function in self._steps:
            given = [blobs[bottom] for bottom in bottoms]
            blobs[top] = function(*given, *parameters.get(name, []))
        return blobs

    def _add(
        self, kind: str, bottoms: list[str], function: Function, text: str = "", in_place=False
    ) -> str:
        self._count += 1
        name = f"l{self._count}"
        top = bottoms[0] if in_place else name
        ends = " ".join(f'bottom: "{bottom}"' for bottom in bottoms) + f' top: "{top}"'
        self._lines.append(f'layer {{ name: "{name}" type: "{kind}" {ends} {text} }}')
        self._steps.append((name, bottoms, top, function))
        return top

    def _size(self, blob: str) -> tuple[int, ...]:
        return self._shapes[blob]

    def _made(self, blob: str, shape: tuple[int, ...]) -> str:
        assert min(shape) > 0
        self._shapes[blob] = shape
        return blob

    def _window(self, blob: str) -> tuple[int, int, int]:
        """A kernel, stride and pad that fit the blob."""
        least = min(self._size(blob)[2:])
        kernel = self.random.randint(1, min(5, least))
        return kernel, self.random.randint(1, 3), self.random.randint(0, kernel - 1)

    def _convolution(self, blob: str) -> str:
        n, channels, height, width = self._size(blob)
        kernel, stride, pad = self._window(blob)
        dilation = self.random.choice([1, 1, 2]) if (kernel - 1) * 2 < min(height, width) else 1
        group = self.random.choice([g for g in (1, 1, 2, 4, channels) if channels % g == 0])
        outputs = group * self.random.choice([1, 3, 4, 8, 16] if group < 4 else [1, 2])
        bias = self.random.random() < 0.8
        text = (
            f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} stride: {stride} "
            f"pad: {pad} dilation: {dilation} group: {group} bias_term: {str(bias).lower()} "
            'weight_filler { type: "gaussian" std: 0.5 } bias_filler { type: "gaussian" } }'
        )
        reach = dilation * (kernel - 1) + 1
        sizes = [(size + 2 * pad - reach) // stride + 1 for size in (height, width)]

        def apply(x, weight, bias=None):
            return F.conv2d(x, weight, bias, stride, pad, dilation, group)

        return self._made(self._add("Convolution", [blob], apply, text), (n, outputs, *sizes))

    def _deconvolution(self, blob: str) -> str:
        n, channels, height, width = self._size(blob)
        if max(height, width) > 12:
            return self._convolution(blob)
        kernel, stride = self.random.randint(1, 4), self.random.randint(1, 2)
        pad = self.random.randint(0, (kernel - 1) // 2)
        group = self.random.choice([g for g in (1, 2, channels) if channels % g == 0])
        outputs = group * self.random.choice([1, 2, 5])
        text = (
            f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} stride: {stride} "
            f'pad: {pad} group: {group} weight_filler {{ type: "gaussian" std: 0.5 }} }}'
        )
        sizes = [stride * (size - 1) + kernel - 2 * pad for size in (height, width)]

        def apply(x, weight, bias):
            return F.conv_transpose2d(x, weight, bias, stride, pad, groups=group)

        return self._made(self._add("Deconvolution", [blob], apply, text), (n, outputs, *sizes))

    def _pooling(self, blob: str) -> str:
        n, channels, *sizes = self._size(blob)
        kernel, stride, pad = self._window(blob)
        stride = min(stride, kernel)  # otherwise windows could begin outside the image
        maximum = self.random.random() < 0.5
        outputs = [pooled_size(size, kernel, stride, pad) for size in sizes]
        pool = max_pool if maximum else average_pool
        text = (
            f"pooling_param {{ pool: {'MAX' if maximum else 'AVE'} kernel_size: {kernel} "
            f"stride: {stride} pad: {pad} }}"
        )
        top = self._add("Pooling", [blob], lambda x: pool(x, kernel, stride, pad), text)
        return self._made(top, (n, channels, *outputs))

    def _lrn(self, blob: str) -> str:
        size = self.random.choice([1, 3, 5])
        alpha, beta, k = 0.5, 0.75, self.random.choice([1.0, 2.0])
        within = self.random.random() < 0.4
        region = "WITHIN_CHANNEL" if within else "ACROSS_CHANNELS"
        text = (
            f"lrn_param {{ local_size: {size} alpha: {alpha} beta: {beta} k: {k} "
            f"norm_region: {region} }}"
        )

        def apply(x):
            if within:  # the scale's constant is 1, not k
                return x * (1 + alpha * average_pool(x * x, size, 1, (size - 1) // 2)) ** -beta
            half = (size - 1) // 2
            squares = F.pad(x * x, (0, 0, 0, 0, half, half))
            total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
            return x * (k + alpha / size * total) ** -beta

        return self._made(self._add("LRN", [blob], apply, text), self._size(blob))

    def _neuron(self, blob: str) -> str:
        kind, text, apply = self.random.choice(
            [
                ("ReLU", "", torch.relu),
                ("ReLU", "relu_param { negative_slope: 0.1 }", lambda x: F.leaky_relu(x, 0.1)),
                ("ELU", "elu_param { alpha: 0.7 }", lambda x: F.elu(x, 0.7)),
                ("Sigmoid", "", torch.sigmoid),
                ("TanH", "", torch.tanh),
                ("AbsVal", "", torch.abs),
                ("BNLL", "", F.softplus),
                ("PReLU", "", F.prelu),
                (
                    "Power",
                    "power_param { power: 2 scale: 0.5 shift: 1 }",
                    lambda x: (1 + 0.5 * x) ** 2,
                ),
            ]
        )
        in_place = self.random.random() < 0.5 and kind not in ("AbsVal", "Power")
        top = self._add(kind, [blob], apply, text, in_place)
        return self._made(top, self._size(blob))

    def _batch_norm(self, blob: str) -> str:
        n, _, height, width = self._size(blob)
        if n * height * width < 8:
            return self._scale(blob)

        def apply(x, *statistics):
            mean = x.mean((0, 2, 3), keepdim=True)
            variance = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
            return (x - mean) / torch.sqrt(variance + 0.01)

        text = "batch_norm_param { eps: 0.01 }"
        in_place = self.random.random() < 0.5
        return self._made(self._add("BatchNorm", [blob], apply, text, in_place), self._size(blob))

    def _scale(self, blob: str) -> str:
        bias = self.random.random() < 0.5
        text = (
            f"scale_param {{ bias_term: {str(bias).lower()} "
            'filler { type: "uniform" min: 0.5 max: 1.5 } bias_filler { type: "gaussian" } }'
        )

        def apply(x, factor, bias=None):
            y = x * factor.view(-1, 1, 1)
            return y if bias is None else y + bias.view(-1, 1, 1)

        in_place = self.random.random() < 0.5
        return self._made(self._add("Scale", [blob], apply, text, in_place), self._size(blob))

    def _softmax(self, blob: str) -> str:
        top = self._add("Softmax", [blob], lambda x: torch.softmax(x, 1))
        return self._made(top, self._size(blob))

    def _mvn(self, blob: str) -> str:
        across = self.random.random() < 0.5
        axes = (1, 2, 3) if across else (2, 3)
        text = f"mvn_param {{ across_channels: {str(across).lower()} eps: {Mvn.eps} }}"
        top = self._add("MVN", [blob], lambda x: Mvn.apply(x, axes), text)
        return self._made(top, self._size(blob))

    def _eltwise(self, blob: str) -> str:
        operation, text, apply = self.random.choice(
            [
                ("SUM", "coeff: 1 coeff: -0.5", lambda a, b: a - 0.5 * b),
                ("SUM", "", torch.add),
                ("PROD", "", torch.mul),
                ("MAX", "", torch.maximum),
            ]
        )
        other = self._add(
            "Power", [blob], lambda x: 0.3 - x, "power_param { scale: -1 shift: 0.3 }"
        )
        self._made(other, self._size(blob))
        text = f"eltwise_param {{ operation: {operation} {text} }}"
        return self._made(self._add("Eltwise", [blob, other], apply, text), self._size(blob))

    def _concat(self, blob: str) -> str:
        n, channels, height, width = self._size(blob)
        branch = self._neuron(blob)
        if branch == blob:  # in place: the branch is the blob
            branch = self._made(self._add("TanH", [blob], torch.tanh), self._size(blob))
        top = self._add("Concat", [blob, branch], lambda a, b: torch.cat([a, b], 1))
        return self._made(top, (n, 2 * channels, height, width))


class Mvn(torch.autograd.Function):
    """Mean-variance normalization with Caffe's gradient, which is exact only for a small eps."""

    eps = 0.1

    @staticmethod
    def forward(ctx, x, axes):
        centred = x - x.mean(axes, keepdim=True)
        deviation = (centred * centred).mean(axes, keepdim=True).sqrt() + Mvn.eps
        y = centred / deviation
        ctx.save_for_backward(y, deviation)
        ctx.axes = axes
        return y

    @staticmethod
    def backward(ctx, dy):
        y, deviation = ctx.saved_tensors
        mean, product = (t.mean(ctx.axes, keepdim=True) for t in (dy, dy * y))
        return (dy - mean - y * product) / deviation, None


CHOICES = [
    RandomNet._convolution, RandomNet._convolution, RandomNet._deconvolution, RandomNet._pooling,
    RandomNet._pooling, RandomNet._lrn, RandomNet._neuron, RandomNet._neuron,
    RandomNet._batch_norm, RandomNet._scale, RandomNet._softmax, RandomNet._mvn,
    RandomNet._eltwise, RandomNet._concat,
]  # fmt: skip


def shape_text(shape: tuple[int, ...]) -> str:
    return "shape { " + " ".join(f"dim: {size}" for size in shape) + " }"


def pooled_size(size: int, kernel: int, stride: int, pad: int) -> int:
    """Caffe's output size: rounded up, but no window may start in the trailing padding."""
    output = math.ceil((size + 2 * pad - kernel) / stride) + 1
    if pad and (output - 1) * stride >= size + pad:
        output -= 1
    return output


def _windows(x: torch.Tensor, kernel: int, stride: int, pad: int, fill: float) -> torch.Tensor:
    """All windows of x, [n, c, out h, out w, kernel * kernel], with `fill` outside x."""
    outputs = [pooled_size(size, kernel, stride, pad) for size in x.shape[2:]]
    needs = [(o - 1) * stride + kernel for o in outputs]
    after = [max(0, need - size - pad) for need, size in zip(needs, x.shape[2:], strict=True)]
    padded = F.pad(x, (pad, after[1], pad, after[0]), value=fill)
    patches = padded.unfold(2, kernel, stride).unfold(3, kernel, stride)
    return patches[:, :, : outputs[0], : outputs[1]].flatten(4)


def max_pool(x: torch.Tensor, kernel: int, stride: int, pad: int) -> torch.Tensor:
    windows = _windows(x, kernel, stride, pad, -math.inf)
    return windows.gather(4, windows.argmax(4, keepdim=True)).squeeze(4)


def average_pool(x: torch.Tensor, kernel: int, stride: int, pad: int) -> torch.Tensor:
    """Sums divided by the number of elements of the window that are in the padded image."""
    sums = _windows(x, kernel, stride, pad, 0.0).sum(4)
    counts = []
    for size, outputs in zip(x.shape[2:], sums.shape[2:], strict=True):
        starts = [i * stride - pad for i in range(outputs)]
        counts.append([min(start + kernel, size + pad) - start for start in starts])
    return sums / torch.tensor(counts[0]).view(-1, 1) / torch.tensor(counts[1])
