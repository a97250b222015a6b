"""GPUs that are only pretended: tensors that say they are on one, computed on the CPU.

As on a real GPU, an operation on tensors of two devices is an error, and what is on one becomes
numpy only after `.cpu()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

CPU = torch.device("cpu")
_TO_NUMPY = (Tensor.numpy, Tensor.__array__)
_DEVICE = Tensor.device.__get__  # type: ignore[attr-defined]
_MAY_MIX = (Tensor.copy_, Tensor.type_as)
_PLACES_MAY_BE_ON_CPU = (Tensor.__getitem__, Tensor.__setitem__)


class Pretended(Tensor):
    """A tensor on a pretended device."""

    place: torch.device

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            return _run(func, args, kwargs or {})


class PretendedDevices(TorchFunctionMode):
    """Lets new tensors be made on pretended devices inside the block, in this thread."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            return _run(func, args, kwargs or {})


def put(value: Any, device: str) -> Any:
    """A tensor on a pretended device; anything else as it is."""
    return _labelled(value, torch.device(device))


def _labelled(value: Any, place: torch.device) -> Any:
    if not isinstance(value, Tensor) or place == CPU:
        return value
    made: Pretended = value.as_subclass(Pretended)  # type: ignore[assignment]
    made.place = place
    return made


def _bare(value: Any) -> Any:
    return value.as_subclass(Tensor) if isinstance(value, Pretended) else value


def _run(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)]
    places = {each.place for each in tensors if isinstance(each, Pretended)}
    if func == _DEVICE:
        return args[0].place if isinstance(args[0], Pretended) else CPU
    if places and func in _TO_NUMPY:
        raise TypeError(f"can't convert a tensor on {places} to numpy; use .cpu() first")
    mixable = tensors[:1] if func in _PLACES_MAY_BE_ON_CPU else tensors
    met = {each.place if isinstance(each, Pretended) else CPU for each in mixable if each.ndim}
    if len(met) > 1 and func not in _MAY_MIX and func is not Tensor.to:
        raise RuntimeError(f"{func}: expected all tensors on one device, found {met}")
    target = next(iter(places), CPU)
    if func in (Tensor.cpu,):
        target = CPU
    elif func is Tensor.to:
        target, args, kwargs = _moved(target, args, kwargs)
    elif kwargs.get("device") is not None:
        target, kwargs = torch.device(kwargs["device"]), {**kwargs, "device": CPU}
    elif func in (Tensor.copy_, Tensor.__setitem__):
        target = args[0].place if isinstance(args[0], Pretended) else CPU
    found = func(*tree_map(_bare, args), **tree_map(_bare, kwargs))
    return tree_map(lambda one: _labelled(one, target), found)


def _moved(
    target: torch.device, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.device, tuple[Any, ...], dict[str, Any]]:
    """Where `.to(…)` takes a tensor, and its other arguments."""
    rest = []
    for each in args[1:]:
        if isinstance(each, Tensor):
            target = each.place if isinstance(each, Pretended) else CPU
            rest.append(each.dtype)
        elif isinstance(each, torch.device | str):
            target = torch.device(each)
        else:
            rest.append(each)
    if kwargs.get("device") is not None:
        target = torch.device(kwargs["device"])
    others = {name: value for name, value in kwargs.items() if name != "device"}
    if not rest and not others:
        rest = [args[0].dtype]
    return target, (args[0], *rest), others
