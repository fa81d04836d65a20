"""The stubs name what the module has, with the same arguments, and everything public has a docstring."""
import ast
import inspect
import pathlib
import re

import numemu
import pytest
from numemu import _core

STUB = ast.parse((pathlib.Path(numemu.__file__).parent / "_core.pyi").read_text())


def arguments(function):
    """Names in the stub, and where those by keyword alone begin."""
    a = function.args
    names = [one.arg for one in a.posonlyargs + a.args if one.arg != "self"]
    return names, [one.arg for one in a.kwonlyargs]


def signature(function):
    """The same of a function of the module, from the first line of its docstring."""
    first = function.__doc__.split("\n")[0]
    inside = re.fullmatch(r"\w+\((.*)\) -> .*", first).group(1)
    flat = re.sub(r"\[[^][]*\]", "", re.sub(r"\[[^][]*\]", "", inside))
    names, kw = [], None
    for part in filter(None, (part.strip() for part in re.split(r",(?![^(]*\))", flat))):
        if part == "*":
            kw = []
            continue
        (names if kw is None else kw).append(re.match(r"\w+", part).group())
    return [name for name in names if name != "self"], kw or []


def functions(body):
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", sorted(functions(STUB.body)))
def test_functions(name):
    if name == "format":  # overloaded in the stub alone
        return
    assert arguments(functions(STUB.body)[name]) == signature(getattr(_core, name))


@pytest.mark.parametrize("cls", [node for node in STUB.body if isinstance(node, ast.ClassDef)], ids=lambda node: node.name)
def test_classes(cls):
    real = getattr(_core, cls.name)
    for name, stub in functions(cls.body).items():
        assert hasattr(real, name), f"{cls.name}.{name}"
        if any(isinstance(d, ast.Name) and d.id == "property" for d in stub.decorator_list) or name.startswith("__"):
            continue
        assert arguments(stub) == signature(getattr(real, name)), f"{cls.name}.{name}"
    public = {name for name in vars(real) if not name.startswith("_")}
    assert public == {name for name in [*functions(cls.body), *(n.target.id for n in cls.body if isinstance(n, ast.AnnAssign))] if not name.startswith("_")} - ({"kind"} if cls.name == "Error" else set())


def test_nothing_is_missing():
    stubbed = {node.name for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    public = {name for name in dir(numemu) if not name.startswith("_") and hasattr(_core, name)}
    assert public <= stubbed, f"without a stub: {sorted(public - stubbed)}"
    assert stubbed <= set(dir(_core))


def test_everything_public_is_documented():
    for name in dir(numemu):
        one = getattr(numemu, name)
        if name.startswith("_") or inspect.ismodule(one):
            continue
        assert one.__doc__ and len(one.__doc__.strip()) > 20, name
