#!/usr/bin/env python3
"""Writes docs/claims.md: every claim of every recorded run, and its verdict before and after verdicts carried resolution.

usage: claims.py [--check] [ROOT]       --check: says that the page differs, exit 1
Figures come from data/results/*/experiment.json, papers' words from docs/systems.md (write that first), earlier verdicts and the
causes of changes from claims.tsv beside this file: run, claim's key, verdict before, cause; the key * is any claim of the run.
"""
import json
import pathlib
import re
import sys

import verdicts

HEAD = """<!-- All claims of all recorded runs: written by docs/experiments/claims.py. -->
# Claims and their verdicts

{counts}

The figures are those of the worst finding of each claim in the run, as in [systems.md](systems.md), where the papers are; commands of the runs: [data/results](../data/results/README.md).
*Before* is the verdict until 29 November 2026, when a closed form held where 4 standard errors around its measurement met it, whatever the tolerance. Since then
a claim holds where the whole 95 % interval lies within the printed tolerance ([experiments.md](experiments.md#claims-findings-and-verdicts)). "-": the claim, or its record, did not exist.
"""
COLUMNS = ["tag", "claim", "the paper's words and where they stand", "predicted ± tolerance", "measured ± half of 95 %", "95 % interval", "before", "now", "cause of the change"]
TAG = re.compile(r" \(((published|derived here|a contrast|an open question)[^()]*)\)")


def papers(systems):
    """Of docs/systems.md: run to its cells and the paper's words, and the rows without a run."""
    words, untested = {}, []
    for system, said, runs, cell, _ in verdicts.published(systems):
        for name in runs:
            words.setdefault(name, []).append((cell, said))
        if not runs:
            untested.append(f"| {system} | {said} | {cell} |")
    return words, untested


def earlier(table):
    """(run, key) to (verdict before, cause)."""
    rows = [line.split("\t") for line in table.read_text().splitlines() if line and not line.startswith("#")]
    return {(run, key): (verdict, cause) for run, key, verdict, cause in rows}


def claim_row(run, claim, said, before):
    what, predicted, measured, interval, now = verdicts.figures(claim)
    was, cause = before.get((run, claim["key"]), before.get((run, "*"), ("-", "a new claim")))
    tag = TAG.search(claim["claim"])
    words = next((text for row, text in said if row.replace("\\", "").endswith("; " + what)), "-")
    cells = [tag[1] if tag else "-", TAG.sub("", claim["claim"]), predicted, measured, interval, was, now, "" if was == now else cause]
    cells = [verdicts.cell(text) for text in cells]
    return "| " + " | ".join(cells[:2] + [words] + cells[2:]) + " |", was, now, tag and tag[2] == "published"


def page(root):
    words, untested = papers(root / "docs" / "systems.md")
    before = earlier(root / "docs" / "experiments" / "claims.tsv")
    out, changed, claims, published = [], 0, 0, 0
    for path in sorted((root / "data" / "results").glob("*/experiment.json")):
        run, conclusion = path.parent.name, json.loads(path.read_text())
        rows = [claim_row(run, claim, words.get(run, []), before) for claim in conclusion.get("claims", [])]
        if not rows:
            continue
        seeds = conclusion["settings"].get("seeds")
        out += [f"\n## {run}", f"`{conclusion['name']}`, numerics version {conclusion['version']}" + (f", seeds: {seeds}." if seeds else "."), "",
                "| " + " | ".join(COLUMNS) + " |", "|---|---|---|---:|---:|---|---|---|---|"] + [row[0] for row in rows]
        claims += len(rows)
        changed += sum(was not in ("-", now) for _, was, now, _ in rows)
        published += sum(bool(row[3]) for row in rows)
    counts = f"{claims} claims in recorded runs, {published} of them published; {changed} verdicts have changed."
    out += ["\n## Published claims that no run tests", "| system | claim and where it stands | why, and the nearest run |", "|---|---|---|"] + untested
    return HEAD.format(counts=counts) + "\n".join(out) + "\n"


def main():
    roots = [argument for argument in sys.argv[1:] if argument != "--check"]
    root = pathlib.Path(roots[0]) if roots else pathlib.Path(__file__).resolve().parents[2]
    target, text = root / "docs" / "claims.md", page(root)
    if "--check" not in sys.argv:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        print("docs/claims.md: differs from the recorded claims: python3 docs/experiments/claims.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
