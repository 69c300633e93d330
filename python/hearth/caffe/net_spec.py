"""Nets written in Python: `L.Convolution(bottom, ...)`, `P.Pooling.MAX`, `NetSpec().to_proto()`.

from caffe import layers as L, params as P
n = caffe.NetSpec()
n.data, n.label = L.Data(source="db", backend=P.Data.LMDB, batch_size=64, ntop=2)
n.ip = L.InnerProduct(n.data, num_output=10, weight_filler=dict(type="xavier"))
n.loss = L.SoftmaxWithLoss(n.ip, n.label)
print(n.to_proto())
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, ItemsView, Iterator, Mapping
from functools import cache
from typing import Any

from hearth.caffe.message import Message, enum_values, field_names, field_type

__all__ = [
    "Function",
    "Layers",
    "NetSpec",
    "Parameters",
    "Top",
    "assign_proto",
    "layers",
    "param_name_dict",
    "params",
    "to_proto",
]


class Top:
    """An output of a layer, to be passed to the layers that read it."""

    def __init__(self, fn: Function, n: int) -> None:
        self.fn = fn
        self.n = n

    def to_proto(self) -> Message:
        """A NetParameter of all layers that this top depends on, with generated names."""
        return to_proto(self)

    def _update(self, params: Mapping[str, Any]) -> None:
        self.fn._update(params)


class Function:
    """A layer: its type, inputs, parameters and tops.

    Raises TypeError if an input is not a Top.
    """

    def __init__(self, type_name: str, inputs: tuple[Any, ...], params: dict[str, Any]) -> None:
        for index, top in enumerate(inputs):
            if not isinstance(top, Top):
                # Same message as pycaffe, because pycaffe's tests and other programs check it.
                raise TypeError(f"{type_name} input {index} is not a Top (type is {type(top)})")
        self.type_name = type_name
        self.inputs = inputs
        self.params = dict(params)
        self.ntop: int = self.params.pop("ntop", 1)
        self.in_place: bool = self.params.pop("in_place", False)
        self.tops = tuple(Top(self, n) for n in range(self.ntop))

    def _update(self, params: Mapping[str, Any]) -> None:
        self.params.update(params)


@cache
def _param_fields() -> dict[str, str]:
    """Maps a layer type to the LayerParameter field that contains its parameters."""
    own: dict[str, str] = {}
    for name in field_names("LayerParameter"):
        if name.endswith("_param"):
            own[field_type("LayerParameter", name).removesuffix("Parameter")] = name
    return own


def param_name_dict() -> dict[str, str]:
    """Maps each layer type to its parameters' name, such as {"Convolution": "convolution"}."""
    return {kind: field.removesuffix("_param") for kind, field in _param_fields().items()}


def assign_proto(proto: Message, name: str, val: Any) -> None:
    """Sets a message's field; converts dicts to messages and wraps a single value for a list."""
    proto.assign(name, val)


def _set_param(layer: Message, name: str, value: Any) -> None:
    """Sets a field of the layer type's message if it has that field, otherwise of the layer."""
    own = _param_fields().get(layer.type)
    in_own = own is not None and name in field_names(field_type("LayerParameter", own))
    if in_own and not name.endswith("param"):
        getattr(layer, own).assign(name, value)
    elif name in field_names("LayerParameter"):
        layer.assign(name, value)
    else:
        try:
            # Neither message has the field: raise AttributeError for the one most likely meant.
            (getattr(layer, own) if own else layer).assign(name, value)
        except AttributeError as error:
            raise AttributeError(f"L.{layer.type}: {error}") from error


class _Writer:
    """Collects the layers that tops depend on, each after its inputs."""

    def __init__(self, names: dict[Any, str]) -> None:
        self.names = dict(names)
        self.made: Counter[str] = Counter()
        self.layers: OrderedDict[Function, Message] = OrderedDict()

    def name_of(self, thing: Top | Function, type_name: str) -> str:
        if thing not in self.names:
            self.made[type_name] += 1
            self.names[thing] = type_name + str(self.made[type_name])
        return self.names[thing]

    def add(self, fn: Function) -> Message:
        if fn in self.layers:
            return self.layers[fn]
        bottoms = [self.add(top.fn).top[top.n] for top in fn.inputs]
        layer = Message("LayerParameter", type=fn.type_name, bottom=bottoms)
        if fn.in_place:
            layer.top = bottoms
        else:
            layer.top = [self.name_of(top, fn.type_name) for top in fn.tops]
        layer.name = self.name_of(fn.tops[0] if fn.tops else fn, fn.type_name)
        for name, value in fn.params.items():
            _set_param(layer, name, value)
        self.layers[fn] = layer
        return layer

    def net(self) -> Message:
        return Message("NetParameter", layer=list(self.layers.values()))


def to_proto(*tops: Top) -> Message:
    """A NetParameter of all layers that the tops depend on, named after their types."""
    writer = _Writer({})
    for top in tops:
        writer.add(top.fn)
    return writer.net()


class NetSpec:
    """A net under construction: setting an attribute to a Top names its blob and layer."""

    tops: OrderedDict[str, Any]

    def __init__(self) -> None:
        object.__setattr__(self, "tops", OrderedDict())

    def __setattr__(self, name: str, value: Top | Function) -> None:
        self.tops[name] = value

    def __getattr__(self, name: str) -> Any:
        try:
            return self.tops[name]
        except KeyError:
            raise AttributeError(f"the net has no top {name!r}") from None

    def __delattr__(self, name: str) -> None:
        del self.tops[name]

    def __setitem__(self, name: str, value: Top | Function) -> None:
        self.tops[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.tops[name]

    def __delitem__(self, name: str) -> None:
        del self.tops[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tops

    def __iter__(self) -> Iterator[str]:
        return iter(self.tops)

    def keys(self) -> list[str]:
        """The names of the tops in insertion order."""
        return list(self.tops)

    def vals(self) -> list[Any]:
        """The tops in insertion order."""
        return list(self.tops.values())

    def items(self) -> ItemsView[str, Any]:
        """(name, top) pairs."""
        return self.tops.items()

    def update(self, name: str, params: Mapping[str, Any]) -> None:
        """Changes parameters of the layer that produces the top `name`."""
        self.tops[name]._update(params)

    def to_proto(self) -> Message:
        """The net as a NetParameter; `str()` of it is prototxt.

        Raises:
            AttributeError, TypeError, ValueError: a layer has an unknown parameter, or a parameter
                of the wrong type; the message names the layer type and the field.
        """
        writer = _Writer({top: name for name, top in self.tops.items()})
        for top in self.tops.values():
            writer.add(top.fn if isinstance(top, Top) else top)
        return writer.net()


class Layers:
    """Creates layers: `layers.Convolution(...)` returns the top of a new Convolution layer.

    `ntop=n` returns a tuple of n tops (a Function for 0), `in_place=True` makes the top the bottom.
    Other keywords are parameters of the layer type, or fields of LayerParameter.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def layer(*inputs: Top, **given: Any) -> Any:
            fn = Function(name, inputs, given)
            if fn.ntop == 0:
                return fn
            return fn.tops[0] if fn.ntop == 1 else fn.tops

        return layer


class _Enums:
    def __init__(self, name: str, values: dict[str, int]) -> None:
        self._name = name
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> int:
        raise AttributeError(f"{self._name}Parameter has no enum value {name!r}")


class Parameters:
    """Enum values of parameters: `params.Pooling.MAX` is the number of PoolingParameter's MAX."""

    def __getattr__(self, name: str) -> _Enums:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Enums(name, enum_values(name + "Parameter"))


layers = Layers()
params = Parameters()
