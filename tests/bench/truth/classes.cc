#include "tests/bench/truth/classes.h"

#include <limits>
#include <utility>

#include "kernels/checks/check.h"

namespace bimetal::truth {
namespace {

using Classes = std::vector<FaultClass>;

constexpr std::uint64_t kTested = 256ull << 10;

// Faults of memory and compute units, which only kernels can see

std::string Memory(Case& c, std::uint64_t word, std::uint64_t bit, int stuck) {
  return "{kind: memory, device: " + c.Device() + ", offset: " + std::to_string(word * 8) +
         ", bit: " + std::to_string(bit) + ", stuck: " + std::to_string(stuck) + "}";
}

std::string Compute(Case& c, std::uint64_t unit) {
  return "{kind: compute, device: " + c.Device() + ", unit: " + std::to_string(unit) + "}";
}

void AddMemory(Classes& classes) {
  for (const std::string machine : {"h100", "mi300x"}) {
    for (const int stuck : {0, 1}) {
      classes.push_back({"memory bit stuck at " + std::to_string(stuck) + ", " + machine, machine,
                         Truth::kFail, false, false, nullptr, [stuck](Case& c) {
                           return c.node.Inject(
                               Memory(c, c.Below(kTested / 8), c.Below(64), stuck));
                         }});
    }
  }
  classes.push_back({"memory: first word", "h100", Truth::kFail, false, false, nullptr,
                     [](Case& c) { return c.node.Inject(Memory(c, 0, c.Below(64), 1)); }});
  classes.push_back(
      {"memory: last word tested", "mi300x", Truth::kFail, false, false, nullptr,
       [](Case& c) { return c.node.Inject(Memory(c, kTested / 8 - 1, c.Below(64), 0)); }});
  classes.push_back({"memory: two bits of one device", "mi300x", Truth::kFail, false, false,
                     nullptr, [](Case& c) -> Status {
                       for (int i = 0; i < 2; ++i) {
                         BIMETAL_TRY(
                             c.node.Inject(Memory(c, c.Below(kTested / 8), c.Below(64), i)));
                       }
                       return {};
                     }});
  classes.push_back(
      {"memory of one MIG instance", "mig", Truth::kFail, false, false, nullptr, [](Case& c) {
         return c.node.PatchDevice(
             c.target, R"({"kind":"memory","offset":)" + std::to_string(c.Below(kTested / 8) * 8) +
                           R"(,"bit":)" + std::to_string(c.Below(64)) + R"(,"stuck":1})");
       }});
  classes.push_back({"memory fault where no run looks", "h100", Truth::kInconclusive, false, false,
                     nullptr, [](Case& c) {
                       return c.node.Inject(
                           Memory(c, kTested / 8 + c.Below(1'000'000), c.Below(64), 1));
                     }});
}

void AddCompute(Classes& classes) {
  classes.push_back({"one wrong SM of 132", "h100", Truth::kFail, false, false, nullptr,
                     [](Case& c) { return c.node.Inject(Compute(c, c.Below(132))); }});
  classes.push_back({"one wrong CU of 304", "mi300x", Truth::kFail, false, false, nullptr,
                     [](Case& c) { return c.node.Inject(Compute(c, c.Below(304))); }});
  classes.push_back({"the first unit is wrong", "mi300x", Truth::kFail, false, false, nullptr,
                     [](Case& c) { return c.node.Inject(Compute(c, 0)); }});
  classes.push_back({"the last unit is wrong", "mi300x", Truth::kFail, false, false, nullptr,
                     [](Case& c) { return c.node.Inject(Compute(c, 303)); }});
  classes.push_back({"memory and compute of one device", "h100", Truth::kFail, false, false,
                     nullptr, [](Case& c) -> Status {
                       BIMETAL_TRY(c.node.Inject(Compute(c, c.Below(132))));
                       return c.node.Inject(Memory(c, c.Below(kTested / 8), c.Below(64), 1));
                     }});
  classes.push_back({"a fault that begins after admission, asked for again", "h100", Truth::kFail,
                     true, false, nullptr, [](Case& c) {
                       c.node.SetRevalidate("again");
                       return c.node.Inject(Memory(c, c.Below(kTested / 8), c.Below(64), 0));
                     }});
}

// Devices that do not do what they are told

void AddConduct(Classes& classes) {
  classes.push_back({"launches claim success and do nothing", "mi300x", Truth::kFail, false, false,
                     nullptr,
                     [](Case& c) { return c.node.PatchDevice(c.target, R"({"kind":"skip"})"); }});
  classes.push_back({"a launch hangs", "mi300x", Truth::kInconclusive, false, false,
                     [](SimNode& node) { node.settings().run_timeout = Millis{1500}; },
                     [](Case& c) { return c.node.PatchDevice(c.target, R"({"kind":"hang"})"); }});
  classes.push_back({"the device vanishes during the run", "h100", Truth::kInconclusive, false,
                     false, nullptr,
                     [](Case& c) { return c.node.PatchDevice(c.target, R"({"kind":"vanish"})"); }});
  classes.push_back({"every vendor call hangs, nvidia", "h100", Truth::kShut, true, false,
                     [](SimNode& node) { node.settings().run_timeout = Millis{1500}; },
                     [](Case& c) {
                       c.node.settings().probe_silence = Millis{700};
                       return c.node.Inject("{kind: hang, device: " + c.Device() + "}");
                     }});
  classes.push_back(
      {"the device is gone, amd", "mi300x", Truth::kShut, true, false, nullptr,
       [](Case& c) { return c.node.Inject("{kind: vanish, device: " + c.Device() + "}"); }});
  classes.push_back(
      {"the library says GPU is lost", "h100", Truth::kShut, true, false, nullptr,
       [](Case& c) { return c.node.Inject("{kind: vanish, device: " + c.Device() + "}"); }});
}

// Faults that the checks of rates and of each precision see

void Only(SimNode& node, std::vector<std::string> checks) {
  node.settings().checks = checks;
  node.settings().policy.required_checks = std::move(checks);
}

FaultClass Kernel(std::string name, std::string machine, Truth truth, std::string json,
                  std::vector<std::string> checks) {
  return {std::move(name),
          std::move(machine),
          truth,
          false,
          false,
          [checks = std::move(checks)](SimNode& node) { Only(node, checks); },
          [json = std::move(json)](Case& c) { return c.node.PatchDevice(c.target, json); }};
}

void AddMeasured(Classes& classes) {
  for (const std::string machine : {"h100", "mi300x"}) {
    classes.push_back(Kernel("device memory 60 % slower, " + machine, machine, Truth::kFail,
                             R"({"kind":"slowMemory","percent":60})", {"hbm-triad"}));
    classes.push_back(Kernel("copies to the host 60 % slower, " + machine, machine, Truth::kFail,
                             R"({"kind":"slowHost","percent":60})",
                             {"host-to-device", "device-to-host"}));
    classes.push_back(Kernel("a bit of every copy over PCIe flips, " + machine, machine,
                             Truth::kFail, R"({"kind":"corruptHost"})",
                             {"host-to-device", "device-to-host"}));
    classes.push_back(Kernel("no memory can be had, " + machine, machine, Truth::kInconclusive,
                             R"({"kind":"noMemory"})", {"memory-pattern", "hbm-triad"}));
    classes.push_back(Kernel("a bit of every copy to a peer flips, " + machine, machine,
                             Truth::kFail, R"({"kind":"corruptPeer"})", {"peer-to-peer"}));
    classes.push_back(Kernel("links to peers 60 % slower, " + machine, machine, Truth::kFail,
                             R"({"kind":"slowLink","percent":60})", {"peer-to-peer"}));
    classes.push_back(Kernel("no link to a peer is up, " + machine, machine, Truth::kFail,
                             R"({"kind":"linkDown"})", {"peer-to-peer"}));
  }
}

// What shows under load alone: errors that the counters then hold, and slow matrix products, which
// no floor of ours binds yet and only the fleet's median tells.
void AddLoaded(Classes& classes) {
  const auto errors = [](Case& c) {
    return c.node.PatchDevice(
        c.target, R"({"kind":"errors","count":)" + std::to_string(1 + c.Below(1000)) + "}");
  };
  for (const std::string machine : {"h100", "mi300x"}) {
    FaultClass stressed = Kernel("memory errors counted under stress, " + machine, machine,
                                 Truth::kFail, "", {"stress"});
    stressed.inject = errors;
    classes.push_back(std::move(stressed));
    FaultClass earlier = Kernel("memory errors of an earlier check, found after stress, " + machine,
                                machine, Truth::kFail, "", {"hbm-triad", "stress"});
    earlier.inject = errors;
    classes.push_back(std::move(earlier));
    for (const std::string check : {"gemm-rate-fp16", "gemm-rate-bf16", "gemm-rate-int8"}) {
      FaultClass slow = Kernel("slow matrix products, seen by " + check + ", " + machine, machine,
                               Truth::kFail, "", {check});
      slow.prepare = [check](SimNode& node) {
        Only(node, {check});
        node.settings().policy.quarantine_degraded = true;
      };
      slow.inject = [](Case& c) {
        return c.node.PatchDevice(c.target, R"({"kind":"slowCompute","percent":)" +
                                                std::to_string(10 + c.Below(60)) + "}");
      };
      classes.push_back(slow);
    }
  }
}

// A vendor call that never comes back, in a check that makes it.
void AddHangs(Classes& classes) {
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"open", "memory-pattern"},   {"allocate", "memory-pattern"}, {"upload", "launch-latency"},
      {"download", "hbm-triad"},    {"copy", "host-to-device"},     {"launch", "hbm-triad"},
      {"wait", "compute-checksum"}, {"peer", "peer-to-peer"}};
  for (const auto& [call, check] : calls) {
    FaultClass hang = Kernel("the vendor call " + call + " hangs", "h100", Truth::kInconclusive,
                             R"({"kind":"hang","call":")" + call + "\"}", {});
    hang.prepare = [check = check](SimNode& node) {
      Only(node, {check});
      node.settings().run_timeout = Millis{1500};
    };
    classes.push_back(std::move(hang));
  }
}

// Each numeric check alone must see the one unit that is wrong.
void AddNumerics(Classes& classes) {
  for (const kernels::Check& check : kernels::AllChecks()) {
    const std::string key(check.key);
    const bool numeric = (key.starts_with("gemm-") && !key.starts_with("gemm-rate-")) ||
                         key == "math" || key == "atomics";
    if (!numeric) continue;
    for (const std::string machine : {"h100", "mi300x"}) {
      kernels::DeviceInfo info;
      info.vendor = machine == "h100" ? "nvidia" : "amd";
      info.arch = machine == "h100" ? "sm_90" : "gfx942";
      info.compute_units = machine == "h100" ? 132 : 304;
      if (!kernels::Applies(check, info, 4)) continue;
      classes.push_back({"one wrong unit, seen by " + key + ", " + machine, machine, Truth::kFail,
                         false, false, [key](SimNode& node) { Only(node, {key}); },
                         [units = info.compute_units](Case& c) {
                           return c.node.Inject(Compute(c, c.Below(units)));
                         }});
    }
  }
}

// Runs that are not what they seem

void Each(api::ValidationRun& run, const std::string& device,
          const std::function<void(api::Verdict&)>& change) {
  for (api::Verdict& verdict : *run.mutable_verdicts()) {
    if (device.empty() || verdict.device() == device) change(verdict);
  }
}

void Drop(api::ValidationRun& run, const std::function<bool(const api::Verdict&)>& which) {
  api::ValidationRun kept = run;
  kept.clear_verdicts();
  for (const api::Verdict& verdict : run.verdicts()) {
    if (!which(verdict)) *kept.add_verdicts() = verdict;
  }
  run = kept;
}

FaultClass Tampered(std::string name, bool whole_node,
                    std::function<void(api::ValidationRun&, const std::string&)> change) {
  return {std::move(name),
          "h100",
          Truth::kInconclusive,
          false,
          whole_node,
          nullptr,
          [change = std::move(change)](Case& c) -> Status {
            c.node.Tamper([change, id = c.node.DeviceId(c.target)](api::ValidationRun& run) {
              change(run, id);
            });
            return {};
          }};
}

void AddRuns(Classes& classes) {
  classes.push_back(Tampered("no verdict on one device", false,
                             [](api::ValidationRun& run, const std::string& id) {
                               Drop(run, [&](const auto& v) { return v.device() == id; });
                             }));
  classes.push_back(Tampered("one check left out for one device", false,
                             [](api::ValidationRun& run, const std::string& id) {
                               Drop(run, [&](const auto& v) {
                                 return v.device() == id && v.check() == "memory-pattern";
                               });
                             }));
  classes.push_back(
      Tampered("the run has no verdicts at all", true,
               [](api::ValidationRun& run, const std::string&) { run.clear_verdicts(); }));
  classes.push_back(Tampered(
      "a run under another fingerprint", true,
      [](api::ValidationRun& run, const std::string&) { run.set_fingerprint("fp-of-yesterday"); }));
  classes.push_back(
      Tampered("the fingerprint changed during the run", true,
               [](api::ValidationRun& run, const std::string&) { run.clear_fingerprint(); }));
  classes.push_back(Tampered("verdicts of a device that is not there", true,
                             [](api::ValidationRun& run, const std::string& id) {
                               Each(run, id, [](auto& v) { v.set_device("GPU-of-another-node"); });
                             }));
  classes.push_back(Tampered("a verdict of an unknown word", false,
                             [](api::ValidationRun& run, const std::string& id) {
                               Each(run, id, [](auto& v) { v.set_verdict("OK"); });
                             }));
  classes.push_back(Tampered("the program could not run on one device", false,
                             [](api::ValidationRun& run, const std::string& id) {
                               Each(run, id, [](auto& v) { v.set_verdict("Inconclusive"); });
                             }));
}

// Rates

// A rate of the run as the program writes it, spread by the seed's noise.
void AddRate(api::ValidationRun& run, const std::string& device, double judged, int samples = 24) {
  Drop(run, [&](const auto& v) { return v.device() == device && v.check() == "hbm-triad"; });
  api::Verdict& rate = *run.add_verdicts();
  rate.set_check("hbm-triad");
  rate.set_device(device);
  rate.set_verdict("NoProfile");
  rate.set_unit("GB/s");
  auto* spread = rate.mutable_distribution();
  spread->set_samples(samples);
  spread->set_min(judged * 0.995);
  spread->set_p5(judged);
  spread->set_median(judged * 1.01);
  spread->set_max(judged * 1.02);
}

FaultClass Rated(std::string name, Truth truth, std::function<double(Case&)> value,
                 int samples = 24) {
  return {std::move(name),
          "h100",
          truth,
          false,
          false,
          [](SimNode& node) { node.settings().policy.quarantine_degraded = true; },
          [value = std::move(value), samples](Case& c) -> Status {
            const double rate = value(c);
            c.node.Tamper([rate, samples, id = c.node.DeviceId(c.target)](api::ValidationRun& run) {
              AddRate(run, id, rate, samples);
            });
            return {};
          }};
}

void AddRates(Classes& classes) {
  constexpr double kFloor = 2512.5;
  classes.push_back(Rated("slow HBM: just below the floor", Truth::kFail,
                          [](Case& c) { return kFloor - 0.001 - double(c.Below(1000)) / 100; }));
  classes.push_back(
      Rated("slow HBM: half of the floor", Truth::kFail, [](Case&) { return kFloor / 2; }));
  classes.push_back(Rated("slow HBM: nothing at all", Truth::kFail, [](Case&) { return 0.0; }));
  classes.push_back(Rated("slower than the fleet, quarantined by the profile", Truth::kFail,
                          [](Case& c) { return 2750.0 - double(c.Below(200)); }));
  classes.push_back(Rated("a rate that is no number", Truth::kInconclusive,
                          [](Case&) { return std::numeric_limits<double>::quiet_NaN(); }));
  classes.push_back(Rated("a rate without end", Truth::kInconclusive,
                          [](Case&) { return std::numeric_limits<double>::infinity(); }));
  classes.push_back(Rated("a negative rate", Truth::kInconclusive, [](Case&) { return -3000.0; }));
  classes.push_back(
      Rated("a rate beyond the hardware", Truth::kInconclusive, [](Case&) { return 90'000.0; }));
  classes.push_back(Rated(
      "too few samples of a rate", Truth::kInconclusive, [](Case&) { return 3000.0; }, 19));
}

// What the host tells

FaultClass Host(std::string name, std::string machine, Truth truth,
                std::function<Status(Case&)> inject, bool whole_node = false) {
  return {std::move(name), std::move(machine), truth, true, whole_node, nullptr, std::move(inject)};
}

FaultClass Xid(int code, Truth truth) {
  return Host("Xid " + std::to_string(code), "h100", truth, [code](Case& c) {
    return c.node.Inject("{kind: xid, device: " + c.Device() + ", code: " + std::to_string(code) +
                         "}");
  });
}

FaultClass AmdLine(std::string name, Truth truth, std::string text) {
  return Host(std::move(name), "mi300x", truth, [text = std::move(text)](Case& c) {
    return c.node.KernelLine("amdgpu " + c.Pci() + ": amdgpu: " + text);
  });
}

void AddHost(Classes& classes) {
  for (const int code : {48, 62, 63, 64, 74, 79, 94, 95, 119, 120, 140}) {
    classes.push_back(Xid(code, Truth::kProveAgain));
  }
  for (const int code : {13, 31, 43, 45}) classes.push_back(Xid(code, Truth::kSound));
  classes.push_back(
      AmdLine("a reset of the GPU failed", Truth::kProveAgain, "GPU reset(2) failed"));
  classes.push_back(AmdLine("an uncorrectable error by RAS", Truth::kProveAgain,
                            "1 uncorrectable hardware errors detected in umc block"));
  classes.push_back(AmdLine("correctable errors by RAS", Truth::kSound,
                            "1 new correctable hardware errors detected in umc block"));
  for (const std::string machine : {"h100", "mi300x"}) {
    classes.push_back(
        Host("uncorrectable memory errors, " + machine, machine, Truth::kShut, [](Case& c) {
          return c.node.Inject("{kind: ecc, device: " + c.Device() +
                               ", count: " + std::to_string(1 + c.Below(9)) + "}");
        }));
  }
  classes.push_back(
      Host("a memory row that could not be remapped", "h100", Truth::kShut,
           [](Case& c) { return c.node.Answer("device " + c.Device() + " remapped 0 1 0 1"); }));
}

// What a pass is bound to

void AddDrift(Classes& classes) {
  const auto replaced = [](std::string name, std::string machine, std::string from,
                           std::string to) {
    return Host(
        std::move(name), std::move(machine), Truth::kProveAgain,
        [from = std::move(from), to = std::move(to)](Case& c) { return c.node.Replace(from, to); },
        true);
  };
  classes.push_back(replaced("another driver, nvidia", "h100", "565.57.01", "570.86.10"));
  classes.push_back(replaced("another driver, amd", "mi300x", "6.12.12", "6.14.14"));
  classes.push_back(replaced("another runtime", "mi300x", "6.4.0", "7.0.1"));
  classes.push_back(replaced("another kernel", "mi300x", "6.8.0-90-generic", "6.8.0-94-generic"));
  classes.push_back(
      replaced("another VBIOS", "h100", "vbios: 96.00.74.00.01", "vbios: 96.00.99.00.02"));
  classes.push_back(replaced("another firmware", "mi300x", "0x000000a6", "0x000000b1"));
  classes.push_back(replaced("another memory partition", "mi300x", "memory: NPS1", "memory: NPS4"));
  classes.push_back(Host(
      "another compute partition", "mi300x", Truth::kProveAgain,
      [](Case& c) {
        return c.node.Replace("{compute: SPX, memory: NPS1}",
                              "{compute: CPX, memory: NPS1, count: 8}");
      },
      true));
  classes.push_back(Host(
      "a reboot", "h100", Truth::kProveAgain, [](Case& c) { return c.node.machine().Reboot(); },
      true));
  classes.push_back(Host("a device in another's place", "h100", Truth::kProveAgain, [](Case& c) {
    c.node.Retell([id = c.node.DeviceId(c.target)](api::Inventory& inventory) {
      for (api::Device& device : *inventory.mutable_devices()) {
        if (device.id() == id) device.set_id("GPU-new");
      }
    });
    return Status();
  }));
  classes.push_back(Host("a PCIe link of half the width", "h100", Truth::kProveAgain, [](Case& c) {
    return c.node.Answer("device " + c.Device() + " link_width 8");
  }));
}

// What the profile expects

void AddExpectations(Classes& classes) {
  classes.push_back(
      {"a device less than the profile expects", "mi300x", Truth::kFail, false, true,
       [](SimNode& node) {
         node.settings().policy.expect.devices = static_cast<std::int64_t>(node.DeviceCount());
       },
       [](Case& c) { return c.node.Inject("{kind: vanish, device: " + c.Device() + "}"); }});
  classes.push_back(
      {"a driver that the profile does not expect", "h100", Truth::kFail, false, true,
       [](SimNode& node) { node.settings().policy.expect.driver_version = "580.95.05"; },
       [](Case&) { return Status(); }});
  classes.push_back({"a partition that the profile does not expect", "mi300x", Truth::kFail, false,
                     true,
                     [](SimNode& node) { node.settings().policy.expect.partition = "SPX/NPS1"; },
                     [](Case& c) { return c.node.Replace("memory: NPS1", "memory: NPS4"); }});
}

// The agent

void AddAgent(Classes& classes) {
  classes.push_back(Host(
      "the agent falls silent", "h100", Truth::kShut,
      [](Case& c) {
        c.node.Silence();
        c.node.Wait(Minutes(5));
        return Status();
      },
      true));
  classes.push_back(Host(
      "the boot id cannot be read", "mi300x", Truth::kShut,
      [](Case& c) { return c.node.WriteFile("proc/sys/kernel/random/boot_id", ""); }, true));
  classes.push_back(Host("the health of a device is not known", "h100", Truth::kShut, [](Case& c) {
    c.node.Retell([id = c.node.DeviceId(c.target)](api::Inventory& inventory) {
      for (api::Device& device : *inventory.mutable_devices()) {
        if (device.id() == id) device.set_health(api::HEALTH_UNKNOWN);
      }
    });
    return Status();
  }));
}

constexpr std::string_view kH100 = R"(name: truth-h100
kernel: 6.8.0-90-generic
numaNodes: 2
gpus:
  - vendor: nvidia
    model: NVIDIA H100 80GB HBM3
    pciDevice: 0x2330
    arch: sm_90
    count: 4
    computeUnits: 132
    memoryBytes: 85520809984
    driver: 565.57.01
    runtime: "12.7"
    firmware: {vbios: 96.00.74.00.01, gsp: 565.57.01, inforom: G520.0200.00.05}
    pci: ["0000:18:00.0", "0000:2a:00.0", "0000:9a:00.0", "0000:ab:00.0"]
    link: {generation: 5, width: 16}
    nvlinks: 18
)";

constexpr std::string_view kMi300x = R"(name: truth-mi300x
kernel: 6.8.0-90-generic
numaNodes: 2
gpus:
  - vendor: amd
    model: AMD Instinct MI300X OAM
    pciDevice: 0x74a1
    arch: gfx942
    count: 4
    computeUnits: 304
    memoryBytes: 206141652992
    driver: 6.12.12
    runtime: 6.4.0
    firmware: {vbios: 113-M3000100-103, mec: "0x000000a6", sdma: "0x00000016", smc: "0x00556e00"}
    partition: {compute: SPX, memory: NPS1}
    pci: ["0000:05:00.0", "0000:26:00.0", "0000:46:00.0", "0000:65:00.0"]
    link: {generation: 5, width: 16}
)";

constexpr std::string_view kMig = R"(name: truth-mig
kernel: 6.8.0-90-generic
numaNodes: 1
gpus:
  - vendor: nvidia
    model: NVIDIA H100 80GB HBM3
    pciDevice: 0x2330
    arch: sm_90
    count: 1
    computeUnits: 132
    memoryBytes: 85520809984
    driver: 565.57.01
    runtime: "12.7"
    firmware: {vbios: 96.00.74.00.01, gsp: 565.57.01}
    pci: ["0000:18:00.0"]
    link: {generation: 5, width: 16}
    mig:
      - {profile: 3g.40gb, memoryBytes: 42412802048, computeUnits: 60}
      - {profile: 3g.40gb, memoryBytes: 42412802048, computeUnits: 60}
)";

}  // namespace

std::string_view TruthName(Truth truth) {
  switch (truth) {
    case Truth::kFail:
      return "fail";
    case Truth::kInconclusive:
      return "inconclusive";
    case Truth::kProveAgain:
      return "prove again";
    case Truth::kShut:
      return "shut";
    case Truth::kSound:
      return "sound";
  }
  return "";
}

std::string DescriptionOf(const std::string& machine) {
  return std::string(machine == "h100" ? kH100 : machine == "mig" ? kMig : kMi300x);
}

std::vector<FaultClass> AllClasses() {
  Classes classes;
  AddMemory(classes);
  AddCompute(classes);
  AddConduct(classes);
  AddMeasured(classes);
  AddLoaded(classes);
  AddHangs(classes);
  AddNumerics(classes);
  AddRuns(classes);
  AddRates(classes);
  AddHost(classes);
  AddDrift(classes);
  AddExpectations(classes);
  AddAgent(classes);
  return classes;
}

}  // namespace bimetal::truth
