#!/usr/bin/env bash
# arm64 computes the same bytes as this machine: a cross build with NEON, warnings as errors, run under qemu-user in a root of its own.
# usage: arm64.sh [--root FOLDER] [--mirror URL]      exit status 77: skipped
# shellcheck source=tests/portability/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

libraries=(libfmt-dev libhwy-dev libboost-dev zlib1g-dev libzip-dev libpng-dev libjpeg-dev libssl-dev libsqlite3-dev libmpfr-dev
  libgmp-dev liblapack-dev liblemon-dev)
make_root bookworm
in_root 'dpkg --add-architecture arm64 && apt-get update -q'
in_root "apt-get install -qy --no-install-recommends g++-aarch64-linux-gnu ccache cmake ninja-build python3 qemu-user libcli11-dev \
  nlohmann-json3-dev libeigen3-dev librandom123-dev catch2 ${libraries[*]/%/:arm64}"
copy_tree
in_root 'cmake -G Ninja -S . -B build/arm64 -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64 -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DNUMEMU_WERROR=ON -DCMAKE_UNITY_BUILD=ON
  cmake --build build/arm64 --target numemu-numbers numemu-networks unit_test
  rm -rf /outputs && python3 tests/portability/outputs.py /outputs qemu-aarch64 build/arm64/cli/numemu-'
for command in formats eval; do "$tree/numemu" "$command" --help >"$folder/help"; done # builds both programs
rm -rf "$folder/outputs-here"
python3 "$tree/tests/portability/outputs.py" "$folder/outputs-here" "$tree/build/release/cli/numemu-"
diff -r "$folder/outputs" "$folder/outputs-here"
echo 'arm64 gives the same bytes'
in_root 'ctest --test-dir build/arm64 -L "^fast$" --output-on-failure'
