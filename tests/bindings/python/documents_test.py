"""The snippets of docs/bindings-python.md run in their order and print what stands below them."""
import contextlib
import io
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).parents[3] / "docs"


def snippets(page):
    """(title of the section, code, what it prints, or None)"""
    text = (DOCS / page).read_text()
    found, title, blocks = [], "", re.split(r"^(## .*|```\w*)$", text, flags=re.M)
    i = 1
    while i < len(blocks):
        if blocks[i].startswith("## "):
            title = blocks[i][3:]
            i += 2
        elif blocks[i] == "```python":
            code, printed = blocks[i + 1], None
            i += 4  # the code, its end, and what stands between
            if i < len(blocks) and blocks[i] == "```" and not blocks[i - 1].strip():
                printed = blocks[i + 1].lstrip("\n")
                i += 4
            found.append((title, code, printed))
        else:
            i += 2
    return found


@pytest.mark.parametrize("page", ["bindings-python.md"])
def test_every_snippet(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMEMU_CACHE", str(tmp_path / "cache"))
    names, wrong = {}, []
    assert len(snippets(page)) >= 7
    for title, code, printed in snippets(page):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{page}: {title}", "exec"), names)
        if printed is None or out.getvalue() != printed:
            wrong.append(f"## {title}\n```\n{out.getvalue()}```")
    assert not wrong, "\n".join(["these print:"] + wrong)
