#!/usr/bin/env bash
# The Debian package of a build, installed by apt in a new root of this machine's release that has nothing else, used and removed.
# usage: package.sh BUILD [--root FOLDER] [--mirror URL]; skipped aloud (exit 77) where roots, tools or mirrors are not there.
build=$(realpath "$1")
shift
# shellcheck source=tests/portability/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

type -P dpkg-shlibdeps >/dev/null || skip "dpkg-dev is not installed"
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
packages=$(mktemp -d)
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$packages"
make_root "$suite" ca-certificates
# shellcheck disable=SC2154  # of root.sh
cp "$packages"/numemu_*.deb "$folder/numemu.deb"
rm -rf "$packages"
# shellcheck disable=SC2016  # for the other shell
in_root '
  apt-get install -qy --no-install-recommends /numemu.deb
  [[ $(echo 3C00 4000 | numemu serve --op mul --format float16) == 4000 ]]
  numemu config --print int8-static | grep -q numemu_recipe
  numemu eval --net mlp --data glyphs --recipe fp8-e4m3 --images 64 | grep "top-1 %"
  numemu experiment | grep -q mvue
  apt-get remove -qy numemu
  [[ ! -e /usr/bin/numemu && ! -e /usr/share/numemu ]]'
echo "installed, used and removed on $suite"
