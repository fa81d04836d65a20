#!/usr/bin/env bash
# Draws report.png, the README's picture: the top of the default sweep's report. Needs chromium.
# docs/images/make.sh [REPORT.html]; without REPORT.html it runs the sweep.
set -euo pipefail

folder=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

report=${1:-$scratch/sweep/report.html}
if (($# == 0)); then "$folder/../../numemu" sweep --out "$scratch/sweep"; fi

# The picture leaves out the lists, the captions and the selector, and ends below the first two figures.
style='<style>dl.losses, dl.losses + .facts, #h-figures, .control, figcaption { display: none }
section { margin-top: 12px !important; padding-top: 0 !important }</style>'
awk -v style="$style" '{ sub("</head>", style "</head>"); print }' "$report" >"$scratch/picture.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch/profile" --window-size=900,945 \
  --virtual-time-budget=8000 --screenshot="$folder/report.png" "file://$scratch/picture.html" 2>"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
