#!/usr/bin/env python3
"""Runs a compiler of device code, or takes its result of an earlier run with the same inputs.

ccache does not know these compilers' device-only modes. The key is the compiler's version, its
arguments without the paths of this tree, and the text of the source and of every header of the tree
that it includes, directly or not. Results lie in a folder outside the tree; what nobody has used for
a month goes. CCACHE_DISABLE, as for ccache, turns it off.

usage: cached_kernel.py --cache DIR --root DIR --source FILE --output FILE -- COMPILER ARGUMENT...
The command must write OUTPUT and the rule file OUTPUT.d.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEPT_S = 30 * 24 * 3600
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.M)
ROOT = "@ROOT@"
OUTPUT = "@OUTPUT@"


def texts(source: Path, root: Path):
    """The source and the tree's headers it includes, each once, as (name below root, bytes)."""
    seen, todo = {}, [source]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen[path] = path.read_bytes()
        for name in INCLUDE.findall(seen[path]):
            for base in (root, path.parent):
                header = base / name.decode()
                if header.is_file():
                    todo.append(header.resolve())
                    break
    return sorted((os.path.relpath(path, root), text) for path, text in seen.items())


def key_of(arguments) -> str:
    command = arguments.command
    version = subprocess.run([command[0], "--version"], capture_output=True, check=True).stdout
    key = hashlib.sha256(version)
    for word in command[1:]:
        word = word.replace(arguments.output, OUTPUT).replace(arguments.root, ROOT)
        key.update(b"\0" + word.encode())
    for name, text in texts(Path(arguments.source).resolve(), Path(arguments.root).resolve()):
        key.update(b"\0" + name.encode() + b"\0" + hashlib.sha256(text).digest())
    return key.hexdigest()


def store(arguments, entry: Path) -> None:
    """Whole or not at all: a reader must never meet half an entry."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    for old in entry.parent.iterdir():
        if time.time() - old.stat().st_mtime > KEPT_S:
            shutil.rmtree(old, ignore_errors=True)
    new = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".new-"))
    shutil.copyfile(arguments.output, new / "object")
    rule = Path(arguments.output + ".d").read_text()
    (new / "rule").write_text(
        rule.replace(arguments.output, OUTPUT).replace(arguments.root, ROOT))
    try:
        new.rename(entry)
    except OSError:  # another build was first
        shutil.rmtree(new, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("cache", "root", "source", "output"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if not arguments.cache or os.environ.get("CCACHE_DISABLE"):
        return subprocess.run(arguments.command).returncode
    entry = Path(arguments.cache) / key_of(arguments)
    if entry.is_dir():
        os.utime(entry)
        shutil.copyfile(entry / "object", arguments.output)
        rule = (entry / "rule").read_text()
        Path(arguments.output + ".d").write_text(
            rule.replace(OUTPUT, arguments.output).replace(ROOT, arguments.root))
        return 0
    status = subprocess.run(arguments.command).returncode
    if status == 0:
        try:
            store(arguments, entry)
        except OSError as error:  # a full or read-only cache must not fail a build
            print(f"cached_kernel: not kept: {error}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
