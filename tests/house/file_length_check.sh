#!/usr/bin/env bash
# A file is one concept: none of ours is longer than 500 lines.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

readonly kLongest=500

check() {
  sources '[^/]*\.(cpp|hpp|h|c|def|sh|cmake|py|js|mjs|sv|css|html)|CMakeLists\.txt' | xargs -r -d '\n' awk -v longest=$kLongest '
    FNR == longest + 1 { print FILENAME ": is longer than " longest " lines" }'
}

lines() { seq "$1" | sed 's,^,// ,'; }
good_longest() { put formats/a.cpp "$(lines $kLongest)"; }
bad_too_long() { put formats/b.cpp "$(lines $((kLongest + 1)))"; }

run_check "$@"
