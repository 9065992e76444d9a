"""A compiled graph is one operator: its inputs are held while it runs, all of them as written.

Inductor's kernels use raw addresses, so interception inside the graph would come too late.
Outputs need nothing: the next operator to see them adopts them.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

from headwater import _C
from headwater.escape_kinds import suspended

_MODULE = "torch._inductor.output_code"
_CALLABLES = ("CompiledFxGraph", "CompiledAOTI")


def install() -> Callable[[], None]:
    """Wraps compiled graphs' calls, now or once inductor is imported; returns the undo."""
    originals: list[tuple[type, Callable[..., Any]]] = []

    def wrap(module: ModuleType) -> None:
        for name in _CALLABLES:
            graph_type = getattr(module, name, None)
            if graph_type is not None and "__call__" in vars(graph_type):
                originals.append((graph_type, graph_type.__call__))
                graph_type.__call__ = _as_one_operator(graph_type.__call__)

    def undo() -> None:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        for graph_type, original in originals:
            graph_type.__call__ = original  # type: ignore[method-assign]

    finder = _AfterImport(_MODULE, wrap)
    if _MODULE in sys.modules:
        wrap(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, finder)
    return undo


def _as_one_operator(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(graph: Any, inputs: Sequence[Any]) -> Any:
        _refuse_cuda_graphs(graph)
        constants = (getattr(graph, "constants", None) or {}).values()
        # No name keeps the list: the graph frees its inputs one by one as it goes.
        held = _C.CompiledCall([x for x in (*inputs, *constants) if isinstance(x, torch.Tensor)])
        with held, suspended():
            return original(graph, inputs)

    return call


def _refuse_cuda_graphs(graph: Any) -> None:
    options = getattr(graph, "fx_kwargs", None) or {}
    if options.get("cudagraphs") and "cuda" in getattr(graph, "device_types", ()):
        raise RuntimeError(
            "A model compiled with CUDA graphs cannot run under Headwater, because CUDA graphs "
            "fix the addresses of tensors. Compile it with another mode, such as "
            "torch.compile(model) or mode='max-autotune-no-cudagraphs'"
        )


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls ``action`` with one module after it has been imported, without importing it."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_then_act(module: ModuleType) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._action(module)

        spec.loader.exec_module = run_then_act  # type: ignore[method-assign]
        return spec
