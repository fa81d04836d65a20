"""Writes the ctest file of one test executable: a test per source and set of labels, with all its cases in one process.

A case stands in its source as TEST_CASE("name", "[label]..."), and Catch2 selects a source by the tag [#stem] of the option -#.
usage: discover.py FOLDER ROOT OUTPUT EXECUTABLE SHARED [--emulator PROGRAM] [--longest NAME=SECONDS ...]
FOLDER holds the *_test.cpp; names are relative to ROOT.
"""
import argparse
import pathlib
import re
import sys

SECONDS = {"fast": 300, "slow": 7200, "exhaustive": 7200, "exhaustive-all": 86400}  # a test may take
NEEDS = ("shared", "silicon")  # labels of cases that run apart from the others of their speed
OTHER = re.compile(r"^\s*(TEMPLATE_\w+|TEST_CASE_METHOD|METHOD_AS_TEST_CASE|REGISTER_TEST_CASE|SCENARIO\w*)\(", re.M)
CASE = re.compile(r'^TEST_CASE\(\s*("(?:[^"\\]|\\.)*"\s*)+(?:,\s*"((?:\[[\w-]+\])*)")?', re.M)


def groups(source: pathlib.Path) -> list[tuple[str, ...]]:
    """The sets of labels of a source's cases."""
    text = source.read_text()
    cases = list(CASE.finditer(text))
    if OTHER.search(text) or len(cases) != len(re.findall(r"^\s*TEST_CASE\(", text, re.M)):
        raise SystemExit(f"{source}: write each case as TEST_CASE(\"name\", \"[label]\")")
    found = set()
    for case in cases:
        labels = re.findall(r"[\w-]+", case[2] or "")
        speeds = [label for label in labels if label in SECONDS]
        if len(speeds) != 1:
            line = text.count("\n", 0, case.start()) + 1
            raise SystemExit(f"{source}:{line}: tag this case [fast], [slow], [exhaustive] or [exhaustive-all]")
        found.add((speeds[0], *(need for need in NEEDS if need in labels)))
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("folder", "root", "output", "executable", "shared"):
        parser.add_argument(name)
    parser.add_argument("--emulator", default="")
    parser.add_argument("--longest", nargs="*", default=[])
    given = parser.parse_args()
    longest = dict(pair.split("=") for pair in given.longest)
    script, stems = ["# Made by tests/discover.py."], {}
    for source in sorted(pathlib.Path(given.folder).rglob("*_test.cpp")):
        if stems.setdefault(source.stem, source) != source:
            raise SystemExit(f"{source}: {stems[source.stem]} has the same stem, by which the runner selects a source")
        path = source.relative_to(given.root).as_posix().removesuffix("_test.cpp")
        for labels in groups(source):
            name = " ".join([path, *labels]).replace(" fast", "")
            cases = f"[#{source.stem}]" + "".join(f"[{label}]" for label in labels)
            cases += "".join(f"~[{need}]" for need in NEEDS if need not in labels)
            # Passive waiting: ctest runs several tests at once, and a thread that spins would take a core from them.
            script.append(
                f"add_test([==[{name}]==] {given.emulator} [==[{given.executable}]==] \"-#\" -d yes [==[{cases}]==])\n"
                f"set_tests_properties([==[{name}]==] PROPERTIES LABELS \"{';'.join(labels)}\" TIMEOUT {SECONDS[labels[0]]}"
                f" COST {longest.get(name, 0)} SKIP_RETURN_CODE 77\n"
                f"  ENVIRONMENT [==[NUMEMU_SHARED={given.shared};OMP_WAIT_POLICY=passive]==])")
    pathlib.Path(given.output).write_text("\n".join(script) + "\n")


if __name__ == "__main__":
    sys.exit(main())
