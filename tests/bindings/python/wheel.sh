#!/usr/bin/env bash
# wheel.sh SOURCE BUILD PYTHON: pip builds the wheel without a network into a fresh environment, and the package works there.
set -euo pipefail
source=$1 build=$2 python=$3
"$python" -c 'import venv, setuptools, wheel, pip, numpy' 2>/dev/null || { echo "skipped: python3-venv, -setuptools, -wheel, -pip and -numpy are needed"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv --system-site-packages "$scratch/env"
# The build folder of this test: what is compiled there already is not compiled again.
NUMEMU_BUILD=$build PIP_DISABLE_PIP_VERSION_CHECK=1 "$scratch/env/bin/pip" install --no-index --no-build-isolation "$source" |
  tail -n 2
rm -rf "$source"/bindings/python/numemu.egg-info
cd "$scratch"
unset PYTHONPATH
"$scratch/env/bin/python" - "$scratch" <<'PYTHON'
import pathlib, sys
import numemu, numpy as np
package = pathlib.Path(numemu.__file__).parent
assert str(package).startswith(sys.argv[1]), package
assert (package / "py.typed").exists() and (package / "_core.pyi").exists() and (package / "data/recipes").is_dir()
assert numemu.encode([0.1, 500], "e4m3fn").tolist() == [29, 126]
a = numemu.encode(np.ones((2, 32)), "e4m3fn")
assert numemu.unit("h100.wgmma.e4m3.f32").gemm(a, a, b_layout="nk").tolist() == [[32.0, 32.0], [32.0, 32.0]]
print("the wheel of numemu", numemu.__version__, "works")
PYTHON
