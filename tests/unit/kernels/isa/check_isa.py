#!/usr/bin/env python3
"""Looks at the machine code of the kernels of one build tree.

  check_isa.py --build DIR             checks, exits 1 where something is wrong
  check_isa.py --build DIR --update    writes resources.golden anew from that build
  check_isa.py --self-test             proves that the checks can fail

Checked are
- the matrix instructions: the innermost loop of every GEMM kernel holds those of its precision and
  no scalar multiply-add beside them (cuobjdump and nvdisasm for CUDA, llvm-objdump for HIP); the PTX
  names them too;
- the resources: registers, spills and stack of every kernel on every architecture equal
  resources.golden, so that a spill is noticed. Under other compilers than the golden file's only
  spills and stack are compared.

What could not be checked for lack of a tool is said; exits 77 where nothing could be checked.
"""

import argparse
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "resources.golden")
SKIPPED = 77

# Precision of a kernel -> architectures -> instruction that must carry its inner loop.
CUDA = {
    "fp64": [(80, r"DMMA"), (0, r"DFMA")],
    "fp32": [(0, r"FFMA2?")],
    "tf32": [(80, r"HMMA\.\S*TF32")],
    "fp16": [(0, r"HMMA\.\d+\.F32(?!\.)")],
    "bf16": [(80, r"HMMA\.\S*BF16")],
    "int8": [(0, r"IMMA\.\S*S8")],
    # Datacentre Blackwell widens mma.sync of fp8 to fp16: no capability is given there.
    "e4m3fn": [(100, r"HMMA\.\d+\.F32(?!\.)"), (90, r"QGMMA\.\S*E4M3\.E4M3"),
               (89, r"QMMA\.\S*E4M3\.E4M3")],
    "e5m2": [(100, r"HMMA\.\d+\.F32(?!\.)"), (90, r"QGMMA\.\S*E5M2\.E5M2"),
             (89, r"QMMA\.\S*E5M2\.E5M2")],
}
CDNA = {
    "fp64": r"v_mfma_f64_16x16x4_?f64",
    "fp32": r"v_mfma_f32_16x16x4_?f32",
    "fp16": r"v_mfma_f32_16x16x16_?f16",
    "bf16": r"v_mfma_f32_16x16x16_?bf16\w*",
    "int8": r"v_mfma_i32_16x16x(16|32)_?i8",
}
HIP = {
    "gfx90a": CDNA,
    "gfx942": {**CDNA, "tf32": r"v_mfma_f32_16x16x8_?xf32",
               "e4m3fnuz": r"v_mfma_f32_16x16x32_fp8_fp8",
               "e5m2fnuz": r"v_mfma_f32_16x16x32_bf8_bf8"},
    "gfx950": {**CDNA, "e4m3fn": r"v_mfma_f32_16x16x32_fp8_fp8",
               "e5m2": r"v_mfma_f32_16x16x32_bf8_bf8"},
    "gfx1100": {"fp64": r"v_fma_f64", "fp32": r"v_(dual_)?fma\w*_f32\S*",
                "fp16": r"v_wmma_f32_16x16x16_f16", "bf16": r"v_wmma_f32_16x16x16_bf16",
                "int8": r"v_wmma_i32_16x16x16_iu8"},
}
SCALAR = re.compile(r"^(FFMA|DFMA|HFMA2|v_fma|v_fmac|v_dual_fmac|v_pk_fma)")
IS_SCALAR = re.compile(r"FFMA|DFMA|v_fma|v_\(dual")
PTX = {
    "75": ["m16n8k8.row.col.f32.f16.f16.f32", "m8n8k16.row.col.s32.s8.s8.s32"],
    "100": ["m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16.row.col.f32.bf16.bf16.f32",
            "m16n8k8.row.col.f32.tf32.tf32.f32", "m8n8k4.row.col.f64.f64.f64.f64",
            "m16n8k32.row.col.s32.s8.s8.s32", "m16n8k32.row.col.f32.e4m3.e4m3.f32",
            "m16n8k32.row.col.f32.e5m2.e5m2.f32"],
}


def run(*command):
  return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cache_value(build, name):
  with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
    for line in cache:
      match = re.match(rf"{name}:\w+=(.*)", line)
      if match:
        return match.group(1)
  return ""


def find_cuda_tools(build):
  """The folder of cuobjdump with nvdisasm beside it, or None."""
  cache = os.environ.get("BIMETAL_CACHE", os.path.expanduser("~/.cache/bimetal"))
  folders = [os.path.dirname(cache_value(build, "BIMETAL_NVCC"))]
  folders += sorted(glob.glob(os.path.join(cache, "cuda-inspect-*", "nvidia", "cu*", "bin")))
  folders += ["/usr/local/cuda/bin"]
  for folder in folders:
    if all(os.access(os.path.join(folder, tool), os.X_OK) for tool in ("cuobjdump", "nvdisasm")):
      return folder
  return None


def find_llvm(build, tool):
  clang = cache_value(build, "BIMETAL_HIP_CLANG")
  beside = os.path.join(os.path.dirname(os.path.realpath(clang)), tool) if clang else ""
  for candidate in (beside, f"/usr/bin/{tool}-19", f"/usr/lib/llvm-19/bin/{tool}"):
    if candidate and os.access(candidate, os.X_OK):
      return candidate
  return None


class Function:
  """The instructions of one kernel: (address, mnemonic, address that it branches to or None)."""

  def __init__(self):
    self.code = []

  def innermost_loops(self):
    loops = [(to, at) for at, _, to in self.code if to is not None and to < at]
    return [(a, b) for a, b in loops
            if not any((c, d) != (a, b) and a <= c and d <= b for c, d in loops)]

  def counts(self, pattern):
    """Over innermost loops: (most hits of the pattern in one, scalar multiply-adds there)."""
    best = (0, 0)
    for begin, end in self.innermost_loops():
      names = [name for at, name, _ in self.code if begin <= at <= end]
      hits = sum(1 for name in names if pattern.match(name))
      best = max(best, (hits, sum(1 for name in names if SCALAR.match(name))))
    return best


def parse_sass(text):
  functions, current = {}, None
  for line in text.splitlines():
    match = re.match(r"\s*Function : (\S+)", line)
    if match:
      current = functions.setdefault(match.group(1), Function())
      continue
    match = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line)
    if match and current is not None:
      to = re.search(r"\b0x([0-9a-f]+)", match.group(3)) if match.group(2).startswith("BRA") else None
      current.code.append((int(match.group(1), 16), match.group(2), int(to.group(1), 16) if to else None))
  return functions


def parse_amd(text):
  functions, current, base = {}, None, 0
  for line in text.splitlines():
    match = re.match(r"([0-9a-f]+) <(\w+)>:", line)
    if match:
      base, current = int(match.group(1), 16), functions.setdefault(match.group(2), Function())
      continue
    match = re.match(r"\s+(\w+).*// ([0-9A-F]+):(?:[^<]*<\w+(?:\+0x([0-9a-f]+))?>)?", line)
    if match and current is not None:
      branch = match.group(1).startswith(("s_cbranch", "s_branch"))
      to = base + int(match.group(3) or "0", 16) if branch else None
      # A dual instruction of RDNA 3 is two: the second mnemonic stands behind "::".
      current.code.append((int(match.group(2), 16), match.group(1), to))
      for second in re.findall(r":: (v_\w+)", line):
        current.code.append((int(match.group(2), 16), second, None))
  return functions


def split_kernel(name):
  match = re.fullmatch(r"bm_gemm_(rate_)?(\w+)", name)
  return bool(match.group(1)), match.group(2)


def judge(arch, functions, pattern_of, problems, lines):
  for name, function in sorted(functions.items()):
    rate, precision = split_kernel(name)
    text = pattern_of(precision)
    if text is None:
      problems.append(f"{arch}: {name}: no instruction is known for it")
      continue
    hits, scalar = function.counts(re.compile(text))
    least = 8 if rate else 2
    if hits < least:
      problems.append(f"{arch}: {name}: {hits} of {text} in an innermost loop, at least {least} wanted")
    if scalar and not IS_SCALAR.search(text):
      problems.append(f"{arch}: {name}: {scalar} scalar multiply-adds beside the matrix instructions")
    lines.append(f"{arch} {name}: {hits} x {text}")


def check_cuda_code(build, tools, problems, lines):
  for cubin in sorted(glob.glob(os.path.join(build, "kernels", "gemm", "sm_*.cubin"))):
    number = int(re.search(r"sm_(\d+)", cubin).group(1))
    functions = parse_sass(run(os.path.join(tools, "cuobjdump"), "-sass", cubin))
    wanted = {p for p, rules in CUDA.items() if any(number >= low for low, _ in rules)}
    missing = wanted - {split_kernel(name)[1] for name in functions}
    problems += [f"sm_{number}: no GEMM kernel of {p}" for p in sorted(missing)]

    def pattern(precision):
      return next((text for low, text in CUDA.get(precision, []) if number >= low), None)

    judge(f"sm_{number}", functions, pattern, problems, lines)


def check_ptx(build, problems, lines):
  for arch, shapes in PTX.items():
    path = os.path.join(build, "kernels", "gemm", f"compute_{arch}.ptx")
    if not os.path.exists(path):
      continue
    with open(path, encoding="utf-8") as ptx:
      text = ptx.read()
    for shape in shapes:
      count = text.count("mma.sync.aligned." + shape)
      lines.append(f"compute_{arch}: {count} x mma.sync {shape}")
      if count == 0:
        problems.append(f"compute_{arch}: no mma.sync {shape}")


def check_hip_code(build, objdump, problems, lines):
  for path in sorted(glob.glob(os.path.join(build, "kernels", "gemm", "gfx*.co"))):
    arch = os.path.basename(path)[:-3]
    if arch not in HIP:
      problems.append(f"{arch}: no instructions are known for it")
      continue
    functions = {n: f for n, f in parse_amd(run(objdump, "-d", path)).items() if n.startswith("bm_")}
    missing = set(HIP[arch]) - {split_kernel(name)[1] for name in functions}
    problems += [f"{arch}: no GEMM kernel of {p}" for p in sorted(missing)]
    judge(arch, functions, HIP[arch].get, problems, lines)


def cuda_resources(build, tools):
  rows = {}
  for cubin in sorted(glob.glob(os.path.join(build, "kernels", "*", "sm_*.cubin"))):
    module = os.path.basename(os.path.dirname(cubin))
    arch = os.path.basename(cubin)[:-6]
    text = run(os.path.join(tools, "cuobjdump"), "--dump-resource-usage", cubin)
    for name, registers, stack, shared, local in re.findall(
        r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", text):
      rows[(module, arch, name)] = (f"registers {registers} shared {shared}",
                                    f"stack {stack} local {local}")
  return rows


def hip_resources(build, readelf):
  rows = {}
  for path in sorted(glob.glob(os.path.join(build, "kernels", "*", "gfx*.co"))):
    module = os.path.basename(os.path.dirname(path))
    arch = os.path.basename(path)[:-3]
    # A list entry a kernel; its keys are at four spaces, those of its arguments deeper.
    for entry in re.split(r"\n  - ", run(readelf, "--notes", path))[1:]:
      keys = dict(re.findall(r"(?:^|\n    )\.(\w+): +(\S+)", entry))
      if "vgpr_count" not in keys:
        continue
      used = f"vgprs {keys['vgpr_count']} agprs {keys.get('agpr_count', '0')} sgprs {keys['sgpr_count']}"
      lost = (f"vgpr-spills {keys['vgpr_spill_count']} sgpr-spills {keys['sgpr_spill_count']} "
              f"scratch {keys['private_segment_fixed_size']}")
      rows[(module, arch, keys["name"])] = (used, lost)
  return rows


def compilers(build):
  nvcc, clang = cache_value(build, "BIMETAL_NVCC"), cache_value(build, "BIMETAL_HIP_CLANG")
  cuda = re.search(r"V[\d.]+", run(nvcc, "--version")).group(0) if nvcc and os.path.exists(nvcc) else "none"
  hip = re.search(r"version ([\d.]+)", run(clang, "--version")).group(1) if clang else "none"
  return {"sm_": f"nvcc {cuda}", "gfx": f"clang {hip}"}


def read_golden():
  made_by, rows = {}, {}
  with open(GOLDEN, encoding="utf-8") as golden:
    for line in golden:
      line = line.strip()
      if line.startswith("compiler "):
        _, kind, version = line.split(" ", 2)
        made_by[kind] = version
      elif line and not line.startswith("#"):
        place, used, lost = (part.strip() for part in line.split("|"))
        rows[tuple(place.split())] = (used, lost)
  return made_by, rows


def write_golden(rows, made_by):
  with open(GOLDEN, "w", encoding="utf-8") as golden:
    golden.write("# Registers and spills of every kernel, kept so that a spill is noticed. Refresh with\n"
                 "#   tests/unit/kernels/isa/check_isa.py --build BUILD --update\n"
                 "# and look at the difference. module architecture kernel | use | spills and stack\n")
    for kind, version in sorted(made_by.items()):
      golden.write(f"compiler {kind} {version}\n")
    for key, (used, lost) in sorted(rows.items()):
      golden.write(f"{' '.join(key)} | {used} | {lost}\n")


def compare(rows, made_by, problems):
  golden_by, golden = read_golden()
  archs = {arch for _, arch, _ in rows}
  modules = {module for module, _, _ in rows}
  for key in sorted(set(golden) | set(rows)):
    kind = "sm_" if key[1].startswith("sm_") else "gfx"
    if key[1] not in archs or key[0] not in modules:
      continue  # a room or a vendor that this tree does not build, or no tool: that is said elsewhere
    if key not in rows or key not in golden:
      problems.append(f"{' '.join(key)}: {'new, not in' if key in rows else 'gone, still in'} resources.golden")
      continue
    same = made_by[kind] == golden_by.get(kind)
    if rows[key][1] != golden[key][1] or (same and rows[key][0] != golden[key][0]):
      problems.append(f"{' '.join(key)}: {' '.join(rows[key])}, golden {' '.join(golden[key])}")


def self_test():
  """Each check must find the fault that is put before it."""
  loop = """
        Function : bm_gemm_fp16
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   {op} R4, R8, R12, R4 ;
        /*0020*/                   {op} R4, R8, R12, R4 ;
        /*0030*/               @P0 BRA 0x10 ;
        /*0040*/                   EXIT ;
  """
  failures = []

  def expect(what, problems, wanted):
    if bool(problems) != wanted:
      failures.append(f"{what}: {problems}")

  for operation, wanted in (("HMMA.16816.F32", False), ("FFMA", True), ("HMMA.16816.F32.BF16", True)):
    problems = []
    judge("sm_80", parse_sass(loop.replace("{op}", operation)),
          lambda precision: CUDA[precision][0][1], problems, [])
    expect(f"a loop of {operation}", problems, wanted)
  outside = loop.replace("{op}", "HMMA.16816.F32").replace("BRA 0x10", "BRA 0x30")
  problems = []
  judge("sm_80", parse_sass(outside), lambda precision: CUDA[precision][0][1], problems, [])
  expect("matrix instructions outside of the loop", problems, True)
  amd = """
0000000000001000 <bm_gemm_int8>:
\tv_mfma_i32_16x16x16i8 v[0:3], v4, v5, v[0:3]    // 000000001000: 00000000
\tv_mfma_i32_16x16x16i8 v[0:3], v4, v5, v[0:3]    // 000000001008: 00000000
\ts_cbranch_scc1 65530    // 000000001010: BF850000 <bm_gemm_int8>
"""
  for text, wanted in ((amd, False), (amd.replace("v_mfma_i32_16x16x16i8", "v_dot4_i32_i8"), True)):
    problems = []
    judge("gfx90a", parse_amd(text), HIP["gfx90a"].get, problems, [])
    expect("a loop of AMD's", problems, wanted)
  made_by, golden = read_golden()
  key = next(iter(golden))
  spilled = {**golden, key: (golden[key][0], golden[key][1].replace("0", "8"))}
  fatter = {**golden, key: (golden[key][0] + "1", golden[key][1])}
  fewer = {k: v for k, v in golden.items() if k != key}
  for what, rows, wanted in (("the golden file itself", golden, False), ("a spill", spilled, True),
                             ("other registers", fatter, True), ("a kernel that is gone", fewer, True)):
    problems = []
    compare(rows, made_by, problems)
    expect(what, problems, wanted)
  problems = []
  compare(fatter, {"sm_": "nvcc another", "gfx": "clang another"}, problems)
  expect("other registers under another compiler", problems, False)
  compare(spilled, {"sm_": "nvcc another", "gfx": "clang another"}, problems)
  expect("a spill under another compiler", problems, True)
  print("\n".join(failures) if failures else "every fault was found")
  return 1 if failures else 0


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", help="a configured and built tree")
  parser.add_argument("--self-test", action="store_true", help="look at faults made for the purpose")
  parser.add_argument("--update", action="store_true", help="write resources.golden anew")
  parser.add_argument("--verbose", action="store_true", help="print every count")
  arguments = parser.parse_args()
  if arguments.self_test:
    return self_test()
  if not arguments.build:
    parser.error("--build is missing")
  build = arguments.build
  cuda, objdump, readelf = find_cuda_tools(build), find_llvm(build, "llvm-objdump"), find_llvm(build, "llvm-readelf")
  problems, lines, rows = [], [], {}
  has_cuda = bool(glob.glob(os.path.join(build, "kernels", "gemm", "sm_*.cubin")))
  has_hip = bool(glob.glob(os.path.join(build, "kernels", "gemm", "gfx*.co")))
  if not has_cuda and not has_hip:
    print(f"NOT CHECKED: {build} holds no device code")
    return SKIPPED
  if has_cuda:
    check_ptx(build, problems, lines)
    if cuda is None:
      print("NOT CHECKED: CUDA machine code: no cuobjdump with nvdisasm (dev/setup --cuda)")
    else:
      check_cuda_code(build, cuda, problems, lines)
      rows.update(cuda_resources(build, cuda))
  if has_hip:
    if objdump is None or readelf is None:
      print("NOT CHECKED: AMD machine code: no llvm-objdump and llvm-readelf (Debian package llvm-19)")
    else:
      check_hip_code(build, objdump, problems, lines)
      rows.update(hip_resources(build, readelf))
  made_by = compilers(build)
  if arguments.update:
    write_golden(rows, made_by)
    print(f"wrote {len(rows)} kernels to {GOLDEN}")
  else:
    compare(rows, made_by, problems)
  if arguments.verbose:
    print("\n".join(lines))
  print("\n".join(problems) if problems else
        f"{len(lines)} instruction counts and the resources of {len(rows)} kernels are as they should be")
  return 1 if problems else 0


if __name__ == "__main__":
  sys.exit(main())
