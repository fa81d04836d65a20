#!/usr/bin/env bash
# Every path that docs/architecture.md names, in backticks or as a link, is there. NAME in a path stands for any name.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

readonly kPage=docs/architecture.md

# paths: what the page has in backticks with a slash behind a folder of the tree, or with the ending of a document; then the targets of
# its links to files, relative to docs/.
paths() {
  grep -oE '`(formats|emu|policies|experiments|api|cli|bindings|tests|bench|data|docs|cmake)/[^`]*`|`[A-Za-z0-9_./-]+\.(md|txt)`' $kPage | tr -d '`'
  grep -oE '\]\([^)#:]+[)#]' $kPage | sed 's|^](|docs/|; s|[)#]$||'
}

check() {
  local path
  [[ -s $kPage ]] || { echo "$kPage: is missing" && return; }
  [[ -n $(paths) ]] || echo "$kPage: names no path"
  paths | sort -u | while read -r path; do
    path=${path%/} # compgen finds any folder whose name ends so
    [[ -n $(compgen -G "${path//NAME/*}") ]] || echo "$kPage: names $path, which is not there"
  done
}

good_page() {
  put formats/codec.hpp '' && put README.md '' && put docs/units.md ''
  put $kPage 'a call of `f()` in `formats/codec.hpp`, `formats/`, `formats/*.hpp`, `formats/NAME.hpp`, `README.md`, [units](units.md#rows),' \
    '[front](../README.md), a key `a/b` and [a page](https://example.org)'
}
bad_file() { good_page && echo 'in `emu/net/gone.cpp`' >>$kPage; }
bad_folder() { good_page && echo 'in `formats/gone/`' >>$kPage; }
bad_glob() { good_page && echo 'in `formats/NAME.cpp`' >>$kPage; }
bad_document() { good_page && echo 'in `GONE.md`' >>$kPage; }
bad_link() { good_page && echo '[gone](gone.md)' >>$kPage; }
bad_silence() { put $kPage 'nothing'; }
bad_absence() { put README.md ''; }

run_check "$@"
