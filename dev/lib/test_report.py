#!/usr/bin/env python3
"""Counts the test cases of ctest runs, looking into each entry's output.

usage: test_report.py JUNIT.xml...

An entry of ctest may hold many cases: a GoogleTest program prints a summary, a script may print TAP
lines ("ok NAME", "not ok NAME", "ok NAME # SKIP why"). An entry that prints neither is one case.
An entry that ctest calls failed counts at least one failure, whatever it printed.

Prints the failures and the skips to stderr, and "N passed, M failed[, K skipped]" to stdout; exits 1
when anything failed or nothing passed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

GTEST_OK = re.compile(r"^\[       OK \] (\S+)", re.MULTILINE)
GTEST_RUN = re.compile(r"^\[ RUN      \] (\S+)", re.MULTILINE)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+)(?:, where .*)? \(\d+ ms\)", re.MULTILINE)
GTEST_SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)", re.MULTILINE)
TAP = re.compile(r"^(ok|not ok)\b(?: \d+)?(?: -)? *(.*)$", re.MULTILINE)


class Counts:
    """Names of the cases by outcome."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []


def count_gtest(entry, output, counts):
    """Adds the cases of a GoogleTest program; false when the output is of no such program."""
    started = GTEST_RUN.findall(output)
    if not started:
        return False
    passed, failed = GTEST_OK.findall(output), GTEST_FAILED.findall(output)
    skipped = GTEST_SKIPPED.findall(output)
    counts.passed += [f"{entry}: {name}" for name in passed]
    counts.skipped += [f"{entry}: {name}" for name in skipped]
    counts.failed += [f"{entry}: {name}" for name in failed]
    # A case that began and never ended took the program down with it.
    ended = set(passed) | set(failed) | set(skipped)
    counts.failed += [f"{entry}: {name} (did not end)" for name in started if name not in ended]
    return True


def count_tap(entry, output, counts):
    """Adds the cases of TAP lines; false when there are none."""
    lines = TAP.findall(output)
    for verdict, name in lines:
        if verdict == "not ok":
            counts.failed.append(f"{entry}: {name}")
        elif re.search(r"# *skip", name, re.IGNORECASE):
            counts.skipped.append(f"{entry}: {name}")
        else:
            counts.passed.append(f"{entry}: {name}")
    return bool(lines)


def count_entry(case, counts):
    """Adds one ctest entry."""
    entry, status = case.get("name"), case.get("status")
    output = case.findtext("system-out") or ""
    before = len(counts.failed)
    if status in ("disabled", "notrun") and case.find("skipped") is not None:
        reason = case.find("skipped").get("message") or ""
        # ctest calls a test whose program is missing "notrun" as well: that is no skip.
        if "SKIP_" in reason or "Disabled" in reason:
            counts.skipped.append(f"{entry}: {reason}")
        else:
            counts.failed.append(f"{entry}: {reason or 'did not run'}")
        return
    found = count_gtest(entry, output, counts) or count_tap(entry, output, counts)
    if status != "run":
        if len(counts.failed) == before:
            failure = case.find("failure")
            reason = failure.get("message") if failure is not None else None
            counts.failed.append(f"{entry}: {reason or status}")
    elif not found:
        counts.passed.append(entry)


def main(paths):
    """Prints the report of all files and returns the exit status."""
    counts = Counts()
    for path in paths:
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError) as error:
            counts.failed.append(f"{path}: no test report ({error})")
            continue
        for case in root.iter("testcase"):
            count_entry(case, counts)
    for name in counts.skipped:
        print(f"skipped: {name}", file=sys.stderr)
    for name in counts.failed:
        print(f"FAILED: {name}", file=sys.stderr)
    line = f"{len(counts.passed)} passed, {len(counts.failed)} failed"
    if counts.skipped:
        line += f", {len(counts.skipped)} skipped"
    print(line)
    return 1 if counts.failed or not counts.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
