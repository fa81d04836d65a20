# Sourced: a Debian root of its own for a build of this tree, by debootstrap; skipped aloud where that is not allowed.
# shellcheck shell=bash
# Options of the scripts: --root FOLDER (kept and used again; default: a temporary folder), --mirror URL (default: the first
# mirror of Debian in this machine's apt sources).
set -euo pipefail

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
folder='' mirror=''

skip() {
  echo "skipped: $*"
  exit 77
}

while (($#)); do
  case $1 in
    --root) folder=$2 && shift 2 ;;
    --mirror) mirror=$2 && shift 2 ;;
    *) echo "unknown option '$1'; --root FOLDER, --mirror URL" >&2 && exit 2 ;;
  esac
done

# make_root SUITE PACKAGE...: the root at $folder, with these packages.
make_root() {
  local suite=$1
  shift
  ((EUID == 0)) || skip "a root of its own needs root"
  type -P debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
  unshare -m true 2>/dev/null || skip "mounts of its own are not allowed here"
  if [[ -z $mirror ]]; then
    mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1) || true
  fi
  [[ -n $mirror ]] || skip "the apt sources name no mirror of Debian (--mirror URL)"
  if [[ -z $folder ]]; then
    folder=$(mktemp -d)
    trap 'rm -rf --one-file-system "$folder"' EXIT
  fi
  mkdir -p "$folder"
  folder=$(realpath "$folder")
  if [[ ! -e $folder/made ]]; then
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$folder" "${mirror% }" || skip "debootstrap of $suite failed"
    touch "$folder/made"
  fi
  cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
  in_root "apt-get update -q && apt-get install -qy --no-install-recommends $*"
}

# in_root COMMAND: bash runs it in the root, in the copy of the tree once there is one.
in_root() {
  # shellcheck disable=SC2016  # for the other shell
  unshare -m bash -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev"
    if [[ -n ${CCACHE_DIR:-} ]]; then mkdir -p "$1/ccache" && mount --bind "$CCACHE_DIR" "$1/ccache"; fi
    mkdir -p "$1/numemu"
    exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive CI=true \
      CCACHE_DIR=/ccache ${http_proxy+http_proxy="$http_proxy"} ${https_proxy+https_proxy="$https_proxy"} \
      chroot "$1" bash -euc "cd /numemu; $2"' _ "$folder" "$1"
}

# copy_tree: what git knows and does not ignore; times stay, so that a build in a kept root continues.
copy_tree() {
  mkdir -p "$folder/numemu"
  find "$folder/numemu" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  (cd "$tree" && git -c safe.directory="$tree" ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null |
    tar -cf - --files-from=-) | tar -xf - --no-same-owner -C "$folder/numemu"
}
