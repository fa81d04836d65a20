#!/usr/bin/env bash
# install.sh FOLDER: ONNX Runtime for Node.js as package-lock.json pins it, without scripts of packages, in FOLDER/node_modules.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?expected a folder}
mkdir -p "$folder"
cp "$here/package.json" "$here/package-lock.json" "$folder"
cd "$folder"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
echo "export NUMEMU_ONNXRUNTIME=$PWD/node_modules"
