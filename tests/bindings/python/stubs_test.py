"""The stubs name what the module has, with the same arguments, and everything public has a docstring."""
import ast
import inspect
import pathlib

import numemu
import pytest
from numemu import _core, _options

STUB = ast.parse((pathlib.Path(numemu.__file__).parent / "_core.pyi").read_text())


def arguments(function):
    """Names in the stub, and where those by keyword alone begin."""
    a = function.args
    names = [one.arg for one in a.posonlyargs + a.args if one.arg != "self"]
    return names, [one.arg for one in a.kwonlyargs]


def signature(function):
    """The same of a function of the module, whose signature inspect reads."""
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    kinds = inspect.Parameter.KEYWORD_ONLY
    return [one.name for one in parameters if one.kind != kinds], [one.name for one in parameters if one.kind == kinds]


def defaults(function):
    """By name what a stub says that arguments are where they are not given."""
    a = function.args
    last = a.posonlyargs + a.args
    pairs = [*zip(last[len(last) - len(a.defaults):], a.defaults), *zip(a.kwonlyargs, a.kw_defaults)]
    return {one.arg: ast.literal_eval(value) for one, value in pairs if value is not None}


def agree(stub, real):
    names, by_name = arguments(stub)
    assert (names, sorted(by_name)) == (signature(real)[0], sorted(signature(real)[1]))
    given = {one.name: one.default for one in inspect.signature(real).parameters.values() if one.default is not one.empty}
    assert defaults(stub) == given


def functions(body):
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", sorted(functions(STUB.body)))
def test_functions(name):
    if name == "format":  # overloaded in the stub alone
        return
    agree(functions(STUB.body)[name], getattr(_core, name))


@pytest.mark.parametrize("cls", [node for node in STUB.body if isinstance(node, ast.ClassDef)], ids=lambda node: node.name)
def test_classes(cls):
    real = getattr(_core, cls.name)
    for name, stub in functions(cls.body).items():
        assert hasattr(real, name), f"{cls.name}.{name}"
        if any(isinstance(d, ast.Name) and d.id == "property" for d in stub.decorator_list) or name.startswith("__"):
            continue
        agree(stub, getattr(real, name))
    public = {name for name in vars(real) if not name.startswith("_")}
    assert public == {name for name in [*functions(cls.body), *(n.target.id for n in cls.body if isinstance(n, ast.AnnAssign))] if not name.startswith("_")}


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


@pytest.mark.parametrize("function, command", [
    (numemu.Network.eval, "eval"), (numemu.Network.infer, "infer"), (numemu.Network.tune, "tune"), (numemu.train, "train"),
    (numemu.sweep, "sweep"), (numemu.experiment, "experiment"),
])
def test_options_of_commands_are_shown(function, command):
    """help() and completion name every option that the requests of api/ declare, and what it does."""
    shown = inspect.signature(function).parameters
    replaced = {"net", "model", "calibrate_on"}
    for name, default, text, _ in _core._options(command):
        if name in replaced and name not in shown:
            continue
        assert name in shown and text
        if f"\n    {name}: " in function.__doc__:
            assert text in function.__doc__ and shown[name].default == default
    assert not any(one.kind is one.VAR_KEYWORD for one in shown.values())


def test_type_checkers_see_the_options_of_commands():
    """The stub of the options is what the requests of api/ declare, and functions name it."""
    folder = pathlib.Path(numemu.__file__).parent
    assert (folder / "_option_types.pyi").read_text() == _options.stub()
    types = {node.name: node for node in ast.parse(_options.stub()).body if isinstance(node, ast.ClassDef)}
    assert len(types) == 6
    assert {"images", "predictions"} <= {line.target.id for line in types["EvalOptions"].body}
    for function in (numemu.Network.eval, numemu.Network.infer, numemu.Network.tune, numemu.train, numemu.sweep, numemu.experiment):
        assert function.__annotations__["options"] == f"Unpack[_option_types.{function.__name__.capitalize()}Options]"
