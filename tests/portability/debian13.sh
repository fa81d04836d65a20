#!/usr/bin/env bash
# Both commands of the README on Debian 13, warnings as errors, in a root of its own; the rows of the default sweep must be
# those that this machine writes.
# usage: debian13.sh [--root FOLDER] [--mirror URL]      exit status 77: skipped
# shellcheck source=tests/portability/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

make_root trixie
copy_tree
in_root './numemu test; ./numemu sweep --fresh --quiet --out /sweep; ./numemu --no-install test -N'
"$tree/numemu" sweep --fresh --quiet --out "$folder/sweep-here"
cmp "$folder/sweep/rows.jsonl" "$folder/sweep-here/rows.jsonl"
echo "rows.jsonl of the default sweep: the same bytes, $(wc -l <"$folder/sweep/rows.jsonl") rows"
