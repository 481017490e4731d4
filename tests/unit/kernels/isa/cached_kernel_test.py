#!/usr/bin/env python3
"""cmake/cached_kernel.py with a compiler that counts its runs."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[4] / "cmake" / "cached_kernel.py"
COMPILER = """#!/bin/sh
# compiler --version | compiler SOURCE OUTPUT [WORD]
[ "$1" = --version ] && { echo one; exit 0; }
echo run >> "$RUNS"
[ "$3" = broken ] && exit 3
cat "$1" "$(dirname "$1")/part.h" > "$2"
echo "$2: $1 $(dirname "$1")/part.h" > "$2.d"
"""


class CachedKernelTest(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.base)
        self.compiler = self.base / "compiler"
        self.compiler.write_text(COMPILER)
        self.compiler.chmod(0o755)
        self.tree("a")

    def tree(self, name, source='#include "part.h"\nsource\n', header="header\n"):
        root = self.base / name
        root.mkdir(exist_ok=True)
        (root / "k.cc").write_text(source)
        (root / "part.h").write_text(header)
        return root

    def build(self, name, *words, **environment):
        root = self.base / name
        output = root / "k.o"
        output.unlink(missing_ok=True)
        before = self.runs()
        status = subprocess.run(
            [sys.executable, SCRIPT, "--cache", self.base / "cache", "--root", root, "--source", root / "k.cc",
             "--output", output, "--", self.compiler, root / "k.cc", output, *words],
            env=dict(os.environ, RUNS=str(self.base / "runs"), **{"CCACHE_DISABLE": "", **environment})).returncode
        return status, self.runs() - before, output

    def runs(self):
        path = self.base / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def test_another_tree_with_the_same_inputs_takes_the_object_and_its_own_paths(self):
        self.assertEqual(self.build("a")[:2], (0, 1))
        self.tree("b")
        status, runs, output = self.build("b")
        self.assertEqual((status, runs), (0, 0))
        self.assertIn("header", output.read_text())
        rule = Path(str(output) + ".d").read_text()
        self.assertIn(str(self.base / "b" / "part.h"), rule)
        self.assertNotIn(str(self.base / "a"), rule)

    def test_a_changed_header_is_compiled(self):
        self.build("a")
        self.tree("a", header="another\n")
        status, runs, output = self.build("a")
        self.assertEqual((status, runs), (0, 1))
        self.assertIn("another", output.read_text())

    def test_another_argument_or_compiler_is_compiled(self):
        self.build("a")
        self.assertEqual(self.build("a", "-O3")[:2], (0, 1))
        self.compiler.write_text(COMPILER.replace("echo one", "echo two"))
        self.assertEqual(self.build("a")[:2], (0, 1))

    def test_a_failure_is_passed_on_and_not_kept(self):
        self.assertEqual(self.build("a", "broken")[:2], (3, 1))
        self.assertEqual(self.build("a", "broken")[:2], (3, 1))

    def test_ccache_disable_compiles_anew(self):
        self.build("a")
        self.assertEqual(self.build("a", CCACHE_DISABLE="1")[:2], (0, 1))


if __name__ == "__main__":
    unittest.main()
