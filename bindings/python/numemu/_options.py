"""The options of commands, which the module declares, as those of Python's functions."""
from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Callable, TypeVar

from . import _core

_Function = TypeVar("_Function", bound=Callable[..., Any])
_typed: dict[str, list[tuple[str, str]]] = {}  # by class of _option_types.pyi: names and types


def with_options(command: str, without: Sequence[str] = ()) -> Callable[[_Function], _Function]:
    """Shows what **options takes in the signature and the docstring: the options of the command but for those that the function
    names itself and `without`. Type checkers read them in _option_types.pyi."""

    def add(function: Any) -> Any:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        named = {one.name for one in own} | set(without)
        rows = [row for row in _core._options(command) if row[0] not in named]
        own += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default, _, _ in rows]
        function.__signature__ = signature.replace(parameters=own)
        lines = "".join(f"\n    {name}: {help}." for name, _, help, _ in rows)
        function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\nOptions, those of `numemu {command}`; None is one that is not given:{lines}\n"
        _typed[f"{function.__name__.capitalize()}Options"] = [(name, type) for name, _, _, type in rows]
        return function

    return add


def stub() -> str:
    """The text of _option_types.pyi."""
    lines = ['"""What **options of functions take, by name; written by numemu._options.stub()."""',
             "from os import PathLike", "from typing import Any, Literal, Mapping, Optional, Sequence, TypedDict, Union"]  # fmt: skip
    for name, rows in sorted(_typed.items()):
        lines += ["", f"class {name}(TypedDict, total=False):"] + [f"    {option}: Optional[{type}]" for option, type in rows]
    return "\n".join(lines) + "\n"
