#!/usr/bin/env python3
"""docs/reference/conditions.md names every reason that the operator gives."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORD = r'"([A-Z][A-Za-z]+)"'
# How the code gives a reason, by folder.
GIVEN = [
    ("core/admission", rf"Say\(Phase::k\w+, {WORD}"),
    ("core/admission", rf"\.reason = {WORD}"),
    ("core/queue", rf"reason = {WORD}"),
    ("core/queue", rf'by_eviction \? {WORD} : "\w+"'),
    ("core/queue", rf"return {WORD};"),
    ("operator/controllers", rf"set_reason\({WORD}\)"),
    ("operator/controllers", rf"reason = {WORD}"),
    ("operator/controllers", rf'reason = view_\.state == "\w+" \? {WORD} : "\w+"'),
    ("operator/controllers", rf"AttemptEnd::k\w+,\s+[\w:]+,\s+{WORD}"),
    ("operator/controllers", rf'"(?:True|False|Unknown)", {WORD},'),
    ("operator/controllers", rf'Finish\(record, "\w+", {WORD}'),
    ("operator/controllers", rf"Suspend\(record, {WORD}"),
    ("operator/controllers", rf'memory \? {WORD} : "\w+"'),
    ("operator/controllers", rf'memory \? "\w+" : {WORD}'),
    ("operator/controllers", rf'\? {WORD}\s+: "\w+",'),
    ("operator/controllers", rf"(?:return |refusal = |held = |WaitReason|pod,\s+)\{{{WORD},"),
]


def main():
    page = (ROOT / "docs/reference/conditions.md").read_text()
    # A cell of a table that holds one word.
    documented = set(re.findall(r"\| ([A-Z][A-Za-z]+) (?=\|)", page))
    given = set()
    for folder, pattern in GIVEN:
        found = set()
        for file in sorted((ROOT / folder).rglob("*.cc")):
            found |= set(re.findall(pattern, file.read_text()))
        if not found:
            print(f"{folder} gives no reason as {pattern}: this test no longer sees anything")
            return 1
        given |= found
    missing = sorted(given - documented - {"True", "False"})
    for word in missing:
        print(f"{word} is given, but docs/reference/conditions.md does not say what to do")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
