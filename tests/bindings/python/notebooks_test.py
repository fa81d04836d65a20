"""The notebooks of docs/notebooks run from top to bottom and print what is committed. NUMEMU_NOTEBOOKS=write renews them."""
import os
import pathlib

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

FOLDER = pathlib.Path(__file__).parents[3] / "docs/notebooks"
#: Bytes of a notebook with its outputs.
LARGEST = 150_000


def printed(notebook):
    """The text of each cell, and how many figures it draws."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
        figures = sum(1 for output in cell.outputs if "image/png" in output.get("data", {}))
        found.append((text, figures))
    return found


def joined(outputs):
    """What is printed in several pieces, as the clock has it, as one; without lines of progress."""
    whole = []
    for output in outputs:
        if output.output_type == "display_data" and "image/png" not in output.data:
            continue
        if whole and output.output_type == whole[-1].output_type == "stream" and output.name == whole[-1].name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMEMU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    committed = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    if os.environ.get("NUMEMU_NOTEBOOKS") == "write":
        for cell in fresh.cells:
            cell.metadata.pop("execution", None)
            if cell.cell_type == "code":
                cell.outputs = joined(cell.outputs)
        nbformat.write(fresh, path)
        committed = fresh
    assert printed(fresh) == printed(committed)
    assert path.stat().st_size < LARGEST


def test_there_are_four():
    assert len(list(FOLDER.glob("*.ipynb"))) == 4
