#!/usr/bin/env bash
# What `cmake --install` and the Debian package put in place, used where the source and the build are not to be seen: the programs with their
# data, manual pages and completions, and a project of somebody else that builds by the CMake package and by pkg-config, in C99 and C++11.
# usage: install_test.sh ROOT BUILD
set -euo pipefail

root=$(realpath "$1") build=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$root/tests/install/client" "$scratch/source"
version=$(sed -nE 's/^project\(numemu VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
commands=$(sed -nE 's/^NUMEMU_COMMAND\([a-z]+, ([a-z_]+),.*/\1/p' "$root/cli/commands.def")
export NUMEMU_CACHE=$scratch/cache root build

fail() {
  echo "install_test: $*" >&2
  exit 1
}
expect() { # expect TEXT COMMAND...: what the command prints holds the text
  local text=$1 printed
  shift
  printed=$("$@" 2>&1) || fail "$* ended with $?: $printed"
  [[ $printed == *"$text"* ]] || fail "$* printed '$printed', expected '$text'"
}
# hidden COMMAND...: runs it where the folders of the source and the build are empty.
hidden() {
  # shellcheck disable=SC2016
  unshare -m bash -c 'mount -t tmpfs none "$build" && mount -t tmpfs none "$root" && exec "$@"' _ "$@"
}
if ! hidden true 2>/dev/null; then
  echo "skipped: mounts of its own are not allowed here, so the source tree stays visible"
  hidden() { "$@"; }
fi

# use PREFIX: every program, what it reads, and what is made for people and shells.
use() {
  local numemu=$1/bin/numemu command
  expect "numemu $version" hidden "$numemu" --version
  expect "4000" hidden bash -c "echo 3C00 4000 | '$numemu' serve --op mul --format float16"
  expect '"numemu_recipe"' hidden "$numemu" config --print int8-static
  expect "top-1 %" hidden "$numemu" eval --net mlp --data glyphs --recipe fp8-e4m3 --images 64
  expect "mvue" hidden "$numemu" experiment
  expect "--steps" hidden "$numemu" tune --help
  for command in $commands; do
    [[ -s $1/share/man/man1/numemu-$command.1 ]] || fail "no manual page of $command"
    if type -P mandoc >/dev/null; then mandoc -Tlint "$1/share/man/man1/numemu-$command.1" || fail "the manual page of $command"; fi
  done
  expect 'numemu\-gemm (1)' cat "$1/share/man/man1/numemu.1"
  expect "_numemu" bash -c "source '$1/share/bash-completion/completions/numemu' && complete -p numemu"
  [[ -n $(find "$1/share/zsh" -name _numemu) ]] || fail "no completion of zsh"
}

# build_client PREFIX: `PREFIX` empty: where the system keeps packages.
build_client() {
  local wanted="$version: 2a is 0.3125" program folder=$scratch/client.${1//\//_} std source compiler flags
  rm -rf "$folder"
  cmake -S "$scratch/source" -B "$folder" ${1:+-DCMAKE_PREFIX_PATH="$1"} >"$folder.log" 2>&1 || fail "$(cat "$folder.log")"
  cmake --build "$folder" >"$folder.log" 2>&1 || fail "$(cat "$folder.log")"
  for program in client_c client_cpp; do expect "$wanted" hidden "$folder/$program"; done
  if cmake -S "$scratch/source" -B "$folder.later" ${1:+-DCMAKE_PREFIX_PATH="$1"} -DNUMEMU_WANTED=99 >/dev/null 2>&1; then
    fail "version 99 was found"
  fi
  type -P pkg-config >/dev/null || { echo "skipped: no pkg-config" && return; }
  if [[ -n $1 ]]; then
    PKG_CONFIG_PATH=$(dirname "$(find "$1" -name numemu.pc)")
    export PKG_CONFIG_PATH
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir numemu)
    export LD_LIBRARY_PATH
  fi
  expect "$version" pkg-config --modversion numemu
  for source in c:c99:cc cpp:c++11:c++; do
    IFS=: read -r source std compiler <<<"$source"
    read -ra flags < <(pkg-config --cflags --libs numemu)
    "$compiler" -std="$std" -Wall -Wextra -pedantic -Werror -o "$folder/by_pkg_config" "$scratch/source/client.$source" "${flags[@]}"
    expect "$wanted" hidden "$folder/by_pkg_config"
  done
  unset PKG_CONFIG_PATH LD_LIBRARY_PATH
}

library=yes
[[ -f $build/install/numemu.pc ]] || library=no
cmake --install "$build" --prefix "$scratch/first" --component numemu >/dev/null
mv "$scratch/first" "$scratch/moved" # nothing in it names its own place
use "$scratch/moved"
if [[ $library == yes ]]; then build_client "$scratch/moved"; else echo "skipped: this build has no library for C"; fi

for tool in cpack dpkg-deb dpkg-shlibdeps; do
  type -P $tool >/dev/null || { echo "skipped: no $tool to make the Debian package" && exit 0; }
done
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch/package" >"$scratch/cpack.log" 2>&1 || fail "$(cat "$scratch/cpack.log")"
package=$(echo "$scratch"/package/numemu_*.deb)
expect "libstdc++6" dpkg-deb --field "$package" Depends
dpkg-deb --extract "$package" "$scratch/extracted"
use "$scratch/extracted/usr"

# This machine's system with layers of its own: what the package manager does there is gone afterwards.
in_root() {
  # shellcheck disable=SC2016
  unshare -m bash -euc '
    mount -t tmpfs none "$1/layers" && mkdir "$1/layers/"{upper,work,root}
    mount -t overlay overlay -o "lowerdir=/,upperdir=$1/layers/upper,workdir=$1/layers/work" "$1/layers/root"
    cd "$1/layers/root"
    for folder in "$build" "$root"; do mkdir -p ".$folder" && mount -t tmpfs none ".$folder"; done
    mkdir -p ".$1" && mount --bind "$1" ".$1"
    mount -t proc proc proc && mount --rbind /dev dev
    exec chroot . bash -euc "$2"' _ "$scratch" "$1"
}
mkdir "$scratch/layers"
if ! in_root true 2>/dev/null; then
  echo "skipped: a root of its own (overlayfs) is not allowed here, so the package was unpacked, not installed"
  exit 0
fi
export -f fail expect use build_client
export scratch version commands library package
# shellcheck disable=SC2016
in_root '
  hidden() { "$@"; } # there is neither source nor build
  dpkg --install "$package" >/dev/null
  expect "install ok installed" dpkg-query --show --showformat="\${Status}" numemu
  use /usr
  if [[ $library == yes ]]; then build_client ""; fi
  dpkg --remove numemu >/dev/null
  [[ ! -e /usr/bin/numemu && ! -e /usr/libexec/numemu && ! -e /usr/share/numemu ]] || fail "dpkg --remove left files"'
