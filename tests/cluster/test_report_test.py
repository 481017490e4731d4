#!/usr/bin/env python3
"""Tests dev/lib/test_report.py: what it counts decides whether a run is green."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import escape

REPORT = pathlib.Path(__file__).resolve().parents[2] / "dev" / "lib" / "test_report.py"

GTEST = """[==========] Running 3 tests from 1 test suite.
[ RUN      ] Books.CountDevices
[       OK ] Books.CountDevices (0 ms)
[ RUN      ] Books/Every.Holds/2
[       OK ] Books/Every.Holds/2 (1 ms)
{middle}
[==========] 3 tests from 1 test suite ran. (2 ms total)
"""


def entry(name, status, output="", extra=""):
    return f'<testcase name="{name}" status="{status}">{extra}<system-out>{escape(output)}</system-out></testcase>'


def report(*entries):
    """Runs the report over one file of entries; returns (exit status, last line)."""
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(f'<?xml version="1.0"?><testsuite>{"".join(entries)}</testsuite>')
        file.flush()
        done = subprocess.run([sys.executable, REPORT, file.name], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


class ReportTest(unittest.TestCase):
    def test_gtest_cases_are_counted_one_by_one(self):
        output = GTEST.format(middle="[ RUN      ] A.B\n[       OK ] A.B (0 ms)")
        self.assertEqual(report(entry("a", "run", output)), (0, "3 passed, 0 failed"))

    def test_a_failed_gtest_case_fails_the_run_and_the_summary_does_not_count_twice(self):
        output = GTEST.format(
            middle="[ RUN      ] A.B\nx.cc:1: Failure\n[  FAILED  ] A.B, where GetParam() = 2 (0 ms)"
        ) + "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.B, where GetParam() = 2\n\n 1 FAILED TEST\n"
        failure = '<failure message=""/>'
        self.assertEqual(report(entry("a", "fail", output, failure)), (1, "2 passed, 1 failed"))

    def test_a_crash_in_a_case_is_a_failure(self):
        output = GTEST.format(middle="[ RUN      ] A.Crashes")
        self.assertEqual(report(entry("a", "fail", output)), (1, "2 passed, 1 failed"))

    def test_a_program_that_fails_after_its_last_case_is_a_failure(self):
        output = GTEST.format(middle="[ RUN      ] A.B\n[       OK ] A.B (0 ms)")
        self.assertEqual(report(entry("a", "fail", output)), (1, "3 passed, 1 failed"))

    def test_a_skipped_case_is_neither_passed_nor_failed(self):
        output = GTEST.format(middle="[ RUN      ] A.B\n[  SKIPPED ] A.B (0 ms)")
        self.assertEqual(report(entry("a", "run", output)), (0, "2 passed, 0 failed, 1 skipped"))

    def test_tap_lines_are_counted(self):
        output = "ok one\nnot ok two\nok 3 - three # SKIP no root\nokay, not a line\n"
        self.assertEqual(report(entry("a", "fail", output)), (1, "1 passed, 1 failed, 1 skipped"))

    def test_a_plain_entry_is_one_case(self):
        self.assertEqual(report(entry("a", "run", "fine"), entry("b", "fail")), (1, "1 passed, 1 failed"))

    def test_a_missing_program_is_a_failure_and_a_skip_is_not(self):
        missing = '<skipped message="Unable to find executable"/>'
        skip = '<skipped message="SKIP_RETURN_CODE=77"/>'
        self.assertEqual(
            report(entry("a", "notrun", "", missing), entry("b", "notrun", "", skip), entry("c", "run")),
            (1, "1 passed, 1 failed, 1 skipped"),
        )

    def test_nothing_run_is_not_green(self):
        self.assertEqual(report(), (1, "0 passed, 0 failed"))

    def test_a_report_that_is_missing_or_broken_is_a_failure(self):
        done = subprocess.run([sys.executable, REPORT, "/nonexistent.xml"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (1, "0 passed, 1 failed"))


class TapResult(unittest.TextTestResult):
    """Prints a TAP line a case, which is what the report counts."""

    def addSuccess(self, test):
        super().addSuccess(test)
        print(f"ok {test._testMethodName}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f"not ok {test._testMethodName}")

    addError = addFailure


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=TapResult, verbosity=0))
