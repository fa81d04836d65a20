#!/usr/bin/env bash
# Tests mirror the source: tests/PATH/NAME_test.cpp or NAME_ASPECT_test.cpp tests PATH/NAME.hpp (.cpp, .def) or the folder
# PATH/NAME; tests/PATH/FOLDER/FOLDER_test.cpp tests a folder as a whole.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# mirrored PATH: PATH without extension, or without some of its last words, is a source file or folder.
mirrored() {
  local path=$1 folder=${1%/*} found
  [[ ${path##*/} == "${folder##*/}" && -d $folder ]] && return
  while :; do
    found=("$path".[chd]*)
    [[ -d $path || -e ${found[0]} ]] && return
    [[ ${path##*/} == *_* ]] || return
    path=${path%_*}
  done
}

check() { # starts no process per test: there are many
  local test tests path mirrors=()
  mapfile -t tests < <(sources '[^/]*_test\.cpp' tests)
  for test in "${tests[@]}"; do
    path=${test#tests/}
    path=${path%_test.cpp}
    case $path in house/* | oracle/* | golden/*) continue ;; esac # whole systems and external truths have no single source file
    if ! mirrored "$path"; then echo "$test: there is no $path.hpp, .cpp, .def or folder"; fi
    mirrors+=("$test")
  done
  if ((${#mirrors[@]})); then grep -LE 'CHECK|REQUIRE' "${mirrors[@]}" | sed 's/$/: asserts nothing/'; fi
}

good_tests() {
  put formats/codec.hpp '' && put tests/formats/codec_test.cpp 'CHECK(true);'
  put formats/formats.def '' && put tests/formats/formats_test.cpp 'CHECK(true);'
  put policies/scale/mse.cpp '' && put tests/policies/scale_test.cpp 'REQUIRE(true);'
  put cli/main.cpp '' && put tests/cli/cli_test.cpp 'CHECK(true);'
  put tests/formats/codec_midpoints_test.cpp 'CHECK(true);'
  put tests/oracle/mpfr_test.cpp 'CHECK(true);'
}
bad_orphan() { put formats/codec.hpp '' && put tests/formats/encoder_test.cpp 'CHECK(true);'; }
bad_aspect_of_nothing() { put formats/codec.hpp '' && put tests/formats/code_midpoints_test.cpp 'CHECK(true);'; }
bad_wrong_folder() { put formats/codec.hpp '' && put tests/emu/codec_test.cpp 'CHECK(true);'; }
bad_empty() { put formats/codec.hpp '' && put tests/formats/codec_test.cpp '// nothing'; }

run_check "$@"
