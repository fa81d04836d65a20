#!/bin/sh
# Writes seven sample reports and opens them in a browser: report_browser_test.sh SAMPLE_PROGRAM FOLDER. Exit 77 = skipped.
set -e
here=${0%/*}
if ! command -v node >/dev/null; then
  echo "skipped: no Node.js"
  exit 77
fi
for kind in full baseline hostile text experiment answer lost; do
  mkdir -p "$2/$kind"
  "$1" "$2/$kind" $kind
done
node "$here/report_browser_test.mjs" "$2/full/report.html" "$2/baseline/report.html" "$2/hostile/report.html" "$2/text/report.html" "$2/experiment/report.html" "$2/answer/report.html" "$2/lost/report.html"
