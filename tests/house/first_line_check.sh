#!/usr/bin/env bash
# The first line of every file says in a sentence what it is for (a script: the line after #!); X.cpp beside X.hpp needs none.
# shellcheck disable=SC2016
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# without_header: of the files on stdin those that are not the source of a header beside them.
without_header() {
  local file
  while read -r file; do [[ $file == *.cpp && -e ${file%.cpp}.hpp ]] || echo "$file"; done
}

check() {
  {
    sources '[^/]*\.(cpp|hpp|h|c|def|sh|cmake|py|js|mjs|sv)|CMakeLists\.txt' \
      formats emu policies experiments api cli bindings tests bench cmake docs
    find . -maxdepth 2 \( -path ./CMakeLists.txt -o -path ./numemu -o -path ./.ci/run \)
  } | without_header | xargs -r -d '\n' awk '
    FNR == 1 && /^#!/ { script = FILENAME; next }
    FNR == 1 || (FNR == 2 && FILENAME == script) {
      if ($0 !~ /^(\/\/|\/\*|#|""")/ || NF < 4) print FILENAME ": does not begin by saying what it is for"
    }'
}

good_files() {
  put formats/a.hpp '// What a value is.' '#pragma once'
  put formats/a.cpp '#include "formats/a.hpp"'
  put tests/house/a.sh '#!/bin/sh' '# Checks one rule of the house.'
  put emu/CMakeLists.txt '# Machines, and what runs on them.'
}
bad_code_first() { put formats/a.hpp '#pragma once' '// What a value is.'; }
bad_header() { put emu/a.hpp '#pragma once' && put emu/a.cpp '// What a machine is.'; }
bad_lone_source() { put formats/a.hpp '// What a value is.' && put formats/b.cpp '#include "formats/a.hpp"'; }
bad_bare_comment() { put formats/a.cpp '//' 'int x;'; }
bad_script() { put tests/a.sh '#!/usr/bin/env bash' 'set -e' '# what it is for'; }
bad_include_first() { put cli/a.cpp '#include <one/or/other>' ; }

run_check "$@"
