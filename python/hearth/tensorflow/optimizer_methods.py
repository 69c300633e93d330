"""Methods of Keras optimizers, patched to reduce gradients before they are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from hearth.errors import invalid

Reduce = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def innermost(optimizer: Any) -> Any:
    """The optimizer inside a LossScaleOptimizer."""
    while (inner := getattr(optimizer, "inner_optimizer", None)) is not None:
        optimizer = inner
    return optimizer


def _of_keras_3(own: Any, reduce: Reduce) -> Any:
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        variables = trainable_variables
        if variables is None:
            variables = self._trainable_variables
        return own(self, reduce(list(grads), list(variables)), trainable_variables)

    return apply


def _of_tf_keras(own: Any, reduce: Reduce) -> Any:
    # tf_keras' LossScaleOptimizer calls this before it checks whether gradients are finite.
    def aggregate_gradients(self: Any, grads_and_vars: Any) -> Any:
        pairs = list(grads_and_vars)
        gradients, variables = [g for g, _ in pairs], [v for _, v in pairs]
        return own(self, list(zip(reduce(gradients, variables), variables, strict=True)))

    return aggregate_gradients


METHODS = {
    "apply": _of_keras_3,
    "aggregate_gradients": _of_tf_keras,
    "_aggregate_gradients": _of_tf_keras,  # the legacy optimizers
}


def method_of(optimizer: Any, mark: str) -> str:
    """The name of the method of METHODS that an innermost() optimizer has.

    Raises:
        ValueError: replace_method() has already replaced it, with the same `mark`.
        TypeError: not a Keras optimizer.
    """
    method = next((name for name in METHODS if hasattr(optimizer, name)), None)
    if method is None or not hasattr(optimizer, "from_config"):
        raise TypeError(f"expected a Keras optimizer, not a {type(optimizer).__name__}")
    if getattr(optimizer, mark, False):
        raise invalid(
            f"this {type(optimizer).__name__} already reduces gradients over the ranks: "
            "call DistributedOptimizer() once for each optimizer"
        )
    return method


def replace_method(optimizer: Any, method: str, changed: Callable[..., Any], mark: str) -> None:
    """Replaces the method on this object only, so that Keras saves the object as its original
    class."""
    object.__setattr__(optimizer, method, MethodType(changed, optimizer))
    object.__setattr__(optimizer, mark, True)


_AGREE = "_agree_by_hearth"


def decide_together(optimizer: Any, agree: Callable[[Any], Any]) -> None:
    """Makes all ranks agree on whether scaled gradients are finite. `optimizer`: the innermost() of
    a Keras 3 optimizer.

    LossScaleOptimizer, with which Keras wraps an optimizer under mixed_float16, applies gradients
    only if they are finite. If only one rank skipped a step, it would stay a step behind the
    others.

    Args:
        agree: maps this rank's decision to the decision of all ranks, a boolean tensor.
    """
    from keras.optimizers import LossScaleOptimizer

    object.__setattr__(optimizer, _AGREE, agree)
    own = LossScaleOptimizer.check_finite
    if hasattr(own, _AGREE):
        return

    def check_finite(self: Any, grads: Any) -> Any:
        finite = own(self, grads)
        decide = getattr(innermost(self), _AGREE, None)
        return decide(finite) if decide else finite

    setattr(check_finite, _AGREE, True)
    LossScaleOptimizer.check_finite = check_finite
