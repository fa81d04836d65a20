"""The options of commands, which the module declares, as those of Python's functions."""
import inspect

from . import _core


def with_options(command, without=()):
    """Shows what **options takes in the signature and the docstring: the options of the command but for those that the function
    names itself and `without`."""

    def add(function):
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        named = {one.name for one in own} | set(without)
        rows = [row for row in _core._options(command) if row[0] not in named]
        own += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default, _ in rows]
        function.__signature__ = signature.replace(parameters=own)
        lines = "".join(f"\n    {name}: {help}." for name, _, help in rows)
        function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\nOptions, those of `numemu {command}`; None is one that is not given:{lines}\n"
        return function

    return add
