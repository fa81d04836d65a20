"""What the tests of the Python package share: the program of the same build, scratch files, and skips that are said aloud."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

try:
    import numemu  # noqa: F401
except ImportError as error:
    pytest.exit(f"skipped: the Python module is not built ({error}): cmake --build FOLDER --target numemu_python", 77)


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"skipped: {report.nodeid.split('/')[-1]}: {str(reason).removeprefix('Skipped: ')}")


class Program:
    """The program numemu in a scratch folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.path = os.environ["NUMEMU_PROGRAM"]

    def run(self, *words, check=True):
        done = subprocess.run([self.path, *map(str, words)], cwd=self.folder, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done

    def json(self, *words):
        return json.loads(self.run(*words, "--json").stdout)

    def refusal(self, *words):
        """The line of a command that fails, without the name of the program."""
        done = self.run(*words, check=False)
        assert done.returncode != 0
        return done.stderr.strip().split("\n")[-1].removeprefix("numemu: ")

    def save(self, name, array):
        np.save(self.folder / name, array)
        return name

    def load(self, name):
        return np.load(self.folder / name)


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


@pytest.fixture
def rng():
    return np.random.default_rng(20250117)


@pytest.fixture
def numbers(rng):
    """float32 of all magnitudes, with the special ones."""
    bits = rng.integers(0, 1 << 32, 20000, dtype=np.uint32)
    some = np.concatenate([bits.view(np.float32), rng.standard_normal(20000, dtype=np.float32)])
    return np.concatenate([some, np.array([0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 1e-45, 65504, 65520], np.float32)])
