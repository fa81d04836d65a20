"""Runs a page: SystemVerilog blocks become the files that their first line names, commands behind "$ " print what stands below them.

usage: page_test.py PAGE [--show]     (in a folder where the page's commands can run; --show prints what they print)
A shown line that begins with ... is any number of printed ones.
"""
import re
import subprocess
import sys


def blocks(text):
    for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield kind, body.splitlines()


def commands(lines):
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def shows(shown, printed):
    at, omitted = 0, False
    for line in shown:
        if line.startswith("..."):
            omitted = True
            continue
        if omitted:
            while at < len(printed) and printed[at] != line:
                at += 1
        if at == len(printed) or printed[at] != line:
            return False
        at, omitted = at + 1, False
    return omitted or at == len(printed)


def main():
    failed, ran = 0, 0
    for kind, lines in blocks(open(sys.argv[1], encoding="utf-8").read()):
        if kind == "systemverilog":
            name = re.fullmatch(r"// (\w+\.sv)", lines[0]).group(1)
            with open(name, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            continue
        for command, shown in commands(lines):
            run = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
            # ("- FILE:LINE: Verilog $finish" and the errors of a simulator stand on its standard output.)
            printed = run.stdout.splitlines()
            ran += 1
            if "--show" in sys.argv:
                print(f"$ {command}", *printed, sep="\n")
            elif run.stderr or not shows(shown, printed):
                failed += 1
                print(f"$ {command}", "expected:", *shown, "printed:", *printed, run.stderr, sep="\n")
    assert ran > 0, "a page without commands"
    sys.exit(failed != 0)


main()
