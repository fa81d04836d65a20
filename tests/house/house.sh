# What the house checks share; a check defines `check`, which prints one line per offence in the current tree, and small
# trees to prove itself on: `bad_*` must be found, `good_*` must pass. Its last line is: run_check "$@"
# usage: NAME_check.sh ROOT | NAME_check.sh --self-test
# shellcheck shell=bash
set -uo pipefail

# sources PATTERN FOLDER...: files of that name below those folders that exist (default: all of ours), relative to the tree.
sources() {
  local pattern=$1 folder folders=()
  shift
  if (($# == 0)); then set -- formats emu policies experiments api cli bindings tests bench; fi
  for folder in "$@"; do if [[ -d $folder ]]; then folders+=("$folder"); fi; done
  if ((${#folders[@]})); then
    find "${folders[@]}" -name node_modules -prune -o -type f -regextype posix-extended -regex ".*/($pattern)" -print | sort
  fi
}

# put FILE LINE...: writes a file of a scratch tree.
put() {
  mkdir -p "$(dirname "$1")"
  printf '%s\n' "${@:2}" >"$1"
}

prove_on() { # prove_on TREE: a fresh scratch tree made by that function gets the verdict its name announces
  local tree=$1 scratch offences verdict=good
  scratch=$(mktemp -d)
  offences=$(cd "$scratch" && "$tree" && check)
  rm -rf "$scratch"
  if [[ -n $offences ]]; then verdict=bad; fi
  printf '%-40s judged %s %s\n' "$tree" "$verdict" "${offences:+($offences)}"
  [[ $tree == ${verdict}_* ]]
}

run_check() {
  local offences tree failed=0
  if [[ $1 == --self-test ]]; then
    for tree in $(compgen -A function | grep -E '^(bad|good)_'); do prove_on "$tree" || failed=1; done
    exit "$failed"
  fi
  cd "$1" || exit 2
  if [[ -z $(sources '[^/]*\.hpp' formats) ]]; then
    echo "$1 is not a numemu tree"
    exit 2
  fi
  offences=$(check)
  if [[ -n $offences ]]; then
    printf '%s\n' "$offences"
    exit 1
  fi
}
