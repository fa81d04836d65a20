"""Builds the extension module with CMake, in the folder where ./numemu builds, or in NUMEMU_BUILD."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()
PACKAGE = ROOT / "bindings/python/numemu"
VERSION = re.search(r"project\(numemu VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


class Build(build_ext):
    def run(self):
        build = pathlib.Path(os.environ.get("NUMEMU_BUILD", ROOT / "build/release"))
        options = ["-DNUMEMU_PYTHON=ON", f"-DNUMEMU_PYTHON_EXECUTABLE={os.path.realpath(sys.executable)}"]
        if not (build / "CMakeCache.txt").exists():
            options += ["-DNUMEMU_TESTS=OFF", "-DCMAKE_UNITY_BUILD=ON"]
        subprocess.run(["cmake", "--preset", "release", "-B", str(build), *options], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", str(build), "--target", "numemu_python"], check=True)
        [extension] = self.extensions
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / "bindings/python/numemu/_core.so", target)
        # What networks read: the small trained networks, recipes and sweeps that numemu ships.
        data = target.parent / "data"
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(ROOT / "data", data, ignore=shutil.ignore_patterns("results", "vectors"))


packages = ["numemu"] + [
    "numemu." + ".".join(folder.relative_to(PACKAGE).parts)
    for folder in sorted(PACKAGE.rglob("*"))
    if folder.is_dir() and (folder / "__init__.py").exists()
]
setup(
    version=VERSION,
    packages=packages,
    package_dir={"": "bindings/python"},
    package_data={"numemu": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("numemu._core", sources=[])],
    cmdclass={"build_ext": Build},
)
