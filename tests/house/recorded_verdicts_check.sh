#!/usr/bin/env bash
# The answers and verdict tables of docs/experiments, and docs/claims.md, are those of the conclusions recorded in data/results.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/docs/experiments

check() {
  python3 "$tools/verdicts.py" --check "$PWD"
  if [[ -f docs/claims.md ]]; then python3 "$tools/claims.py" --check "$PWD"; fi
}

# tree MEASURED ROW: a recorded conclusion with one claim, and a page that has ROW.
tree() {
  put data/results/README.md "| \`a\` | \`./numemu experiment a\` | all is well |"
  put data/results/a/experiment.json '{"settings": {"seeds": "5"}, "claims": [{"claim": "It holds.", "holds": 1, "undecided": 0,' \
    "\"fails\": 0, \"verdict\": \"holds\", \"worst\": {\"what\": \"x\", \"predicted\": 1, \"tolerance\": 0.02, \"measured\": $1, \"ci95\": [0.9, 1.2]}}]}"
  put docs/experiments/a.md '# a' '<!-- verdicts of a -->' '`./numemu experiment a`, seeds: 5.' \
    'The figures are those of the worst finding of each claim.' '' \
    '| claim | worst finding | predicted ± tolerance | measured ± half of 95 % | 95 % interval | verdict | hold, undecided, fail |' \
    '|---|---|---:|---:|---|---|---|' "$2" '<!-- end of verdicts -->'
}
good_same() { tree 1.1 '| It holds. | x | 1 ± 0.02 | 1.1 ± 0.15 | \[0.9, 1.2\] | holds | 1, 0, 0 |'; }
answered() {
  put data/results/README.md "| \`a\` | \`./numemu experiment a\` | all is well |"
  put data/results/a/experiment.json '{"settings": {"net": "mlp", "data": "glyphs", "seeds": "5", "epochs": "2", "batch": "32", "train_samples": "65"}, "claims": [
    {"claim": "It holds (published).", "verdict": "holds"}, {"claim": "So it does (a contrast).", "verdict": "fails"}]}'
  put docs/systems.md '## S' '| It holds (abstract) | [a](l): mlp; x | 1 | 1.1 | - | holds |'
  put docs/experiments/a.md '# a' '<!-- answer of a -->' "$1" '<!-- end of answer -->'
}
good_answer() { answered '**Answer** (`a`: mlp on glyphs; seeds: 5; steps: 6; of 1 published claim 1 holds): all is well.'; }
bad_answer() { answered '**Answer** (`a`: mlp on glyphs; seeds: 5; steps: 6; of 1 published claim 1 holds): all is lost.'; }
good_without_a_table() { put docs/experiments/a.md '# a'; }
bad_figure() { tree 1.2 '| It holds. | x | 1 ± 0.02 | 1.1 ± 0.15 | \[0.9, 1.2\] | holds | 1, 0, 0 |'; }
bad_verdict() { tree 1.1 '| It holds. | x | 1 ± 0.02 | 1.1 ± 0.15 | \[0.9, 1.2\] | fails | 1, 0, 0 |'; }
# claims VERDICT: a published claim that held before, with that verdict now, and the page of claims where it is undecided.
claims() {
  put data/results/a/experiment.json '{"name": "n", "version": "3", "settings": {"seeds": "5"}, "claims": [{"key": "k", "claim": "It holds (published).",' \
    "\"verdict\": \"$1\", \"worst\": {\"what\": \"x|y\", \"predicted\": 1, \"measured\": 1.1, \"ci95\": null}}]}"
  put docs/systems.md '## S' '| 1 | 2 | 3 | 4 | 5 | 6 |' '| It holds (abstract) | [a](l): mlp; x\|y | 1 | 1.1 | - | holds |'
  put docs/experiments/claims.tsv $'a\tk\tholds\tthe tolerance'
  put docs/claims.md ''
  python3 "$tools/claims.py" "$PWD"
}
good_claims() { claims undecided; }
good_claims_row() {
  claims undecided
  grep -qF '| published | It holds. | It holds (abstract) | 1 | 1.1 | - | holds | undecided | the tolerance |' docs/claims.md || echo old >docs/claims.md
}
bad_claims() {
  claims undecided
  sed -i 's/"undecided"/"fails"/' data/results/a/experiment.json
}
bad_missing_folder() { put docs/experiments/a.md '<!-- verdicts of b -->' '<!-- end of verdicts -->'; }

run_check "$@"
