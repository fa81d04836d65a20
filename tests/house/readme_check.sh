#!/usr/bin/env bash
# The two commands stand in the README's first screen, and the front documents are there.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

readonly kFirstScreen=20

check() {
  local command file
  for command in './numemu sweep' './numemu test'; do
    head -n $kFirstScreen README.md 2>/dev/null | grep -qF "$command" || echo "README.md: $command is not in its first $kFirstScreen lines"
  done
  for file in CONTRIBUTING.md CHANGELOG.md docs/adr/README.md; do [[ -s $file ]] || echo "$file: is missing"; done
  grep -q 'Apache License' LICENSE 2>/dev/null || echo "LICENSE: is not the Apache license"
  find . -maxdepth 2 \( -path './*.md' -o -path './docs/*.md' \) | while read -r file; do # links to files of the tree
    { grep -oE '\]\([a-zA-Z0-9_./-]+\)' "$file" || true; } | tr -d '])' | while IFS='(' read -r _ target; do
      [[ -e $(dirname "$file")/$target ]] || echo "$file: links to $target, which is not there"
    done
  done
}

good_documents() {
  put README.md '# numemu' './numemu sweep' './numemu test' 'see [how](CONTRIBUTING.md)'
  put CONTRIBUTING.md x && put CHANGELOG.md x && put docs/adr/README.md x && put LICENSE 'Apache License'
}
bad_late_command() { good_documents && put README.md "$(seq $kFirstScreen)" './numemu sweep' './numemu test'; }
bad_no_test_command() { good_documents && put README.md './numemu sweep'; }
bad_dead_link() { good_documents && put CHANGELOG.md '[gone](docs/gone.md)'; }
bad_no_license() { good_documents && rm LICENSE; }

run_check "$@"
