#!/usr/bin/env bash
# The test that every kernel compiles for every architecture of nvcc; ends with 77 (skipped) where there is no nvcc.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
NUMEMU_CUDA_BUILD=$folder/build "$(dirname -- "${BASH_SOURCE[0]}")/run" --compile "$folder" || status=$?
if (( status == 77 )); then printf 'skipped: no nvcc\n'; fi
exit "$status"
