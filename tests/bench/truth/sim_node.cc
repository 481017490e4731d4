#include "tests/bench/truth/sim_node.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "agent/inventory/to_api.h"
#include "agent/verdicts/run_reader.h"
#include "kernels/run/run.h"

namespace bimetal::truth {
namespace {

namespace admission = core::admission;
namespace validation = core::validation;

// Enough for every pattern step and a stuck bit at any place, small enough for thousands of runs.
constexpr std::uint64_t kTestBytes = 256ull << 10;
constexpr int kMostRounds = 6;

admission::DeviceHealth HealthOf(api::Health health) {
  switch (health) {
    case api::HEALTHY:
      return admission::DeviceHealth::kHealthy;
    case api::UNHEALTHY:
      return admission::DeviceHealth::kUnhealthy;
    default:
      return admission::DeviceHealth::kUnknown;
  }
}

// As the operator reads a report, for the one vendor of the machine.
admission::Report ReportOf(const api::Inventory& inventory, const std::string& vendor,
                           const std::string& boot_id, TimePoint now) {
  admission::Report report;
  report.received = now;
  report.boot_id = boot_id;
  for (const api::Stack& stack : inventory.stacks()) {
    if (stack.vendor() != vendor) continue;
    report.fingerprint = stack.fingerprint();
    report.driver_version = stack.driver_version();
  }
  for (const api::Device& device : inventory.devices()) {
    if (device.vendor() != vendor) continue;
    admission::ReportedDevice& added = report.devices.emplace_back();
    added.id.value = device.id();
    added.health = HealthOf(device.health());
    added.in_use = false;
    added.partition = device.partition();
    added.firmware = {device.firmware().begin(), device.firmware().end()};
    for (const api::Link& link : device.links()) added.links_up += link.active();
    added.unread = {device.unread().begin(), device.unread().end()};
  }
  std::sort(report.devices.begin(), report.devices.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const api::Finding& finding : inventory.findings()) {
    if (!finding.vendor().empty() && finding.vendor() != vendor) continue;
    admission::Fault fault;
    fault.code = finding.code();
    fault.device.value = finding.device();
    fault.effect = admission::ParseEffect(finding.effect());
    fault.event = finding.event();
    fault.evidence = finding.evidence();
    report.faults.push_back(std::move(fault));
  }
  return report;
}

admission::Run ToAdmission(const api::ValidationRun& run,
                           const std::vector<validation::Judged>& judged) {
  admission::Run out;
  out.id = run.run();
  out.fingerprint = run.fingerprint();
  out.level = run.level();
  for (const validation::Judged& one : judged) {
    admission::CheckVerdict verdict;
    verdict.check = one.check;
    verdict.device.value = one.device;
    verdict.verdict = admission::ParseVerdict(validation::VerdictName(one.verdict))
                          .value_or(admission::Verdict::kInconclusive);
    verdict.evidence = one.evidence;
    verdict.capability = one.capability;
    out.verdicts.push_back(std::move(verdict));
  }
  return out;
}

Status WriteText(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return {};
}

}  // namespace

Result<SimNode> SimNode::Make(const std::string& yaml, const std::string& root,
                              const std::string& name, std::int64_t seed, NodeSettings settings) {
  SimNode node;
  node.settings_ = std::move(settings);
  node.yaml_ = yaml;
  node.root_ = root;
  node.name_ = name;
  node.seed_ = seed;
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  BIMETAL_TRY_ASSIGN(node.machine_,
                     machines::Machine::Build(yaml, root, name, seed, node.settings_.nvml));
  return node;
}

std::string SimNode::DeviceId(std::size_t number) const {
  return machine_->Devices().at(number).id;
}

Status SimNode::Inject(const std::string& fault) {
  // The words are those of a description; one with only this fault reads them.
  BIMETAL_TRY_ASSIGN(const machines::Description description,
                     machines::ParseDescription(yaml_ + "\nfaults:\n  - " + fault + "\n"));
  return machine_->Inject(description.faults.at(0));
}

Status SimNode::PatchDevice(std::size_t number, const std::string& json) {
  const std::string path = root_ + "/devices.json";
  BIMETAL_TRY_ASSIGN(const std::string text, machines::ReadFile(path));
  nlohmann::json machine = nlohmann::json::parse(text);
  nlohmann::json& device = machine.at("devices").at(number);
  device["faults"].push_back(nlohmann::json::parse(json));
  return WriteText(path, machine.dump());
}

Status SimNode::Replace(const std::string& from, const std::string& to) {
  std::size_t count = 0;
  for (auto at = yaml_.find(from); at != std::string::npos; at = yaml_.find(from, at + to.size())) {
    yaml_.replace(at, from.size(), to);
    ++count;
  }
  if (count == 0) return Fail(ErrorCode::kInvalid, "the description has no '" + from + "'");
  BIMETAL_TRY_ASSIGN(machine_,
                     machines::Machine::Build(yaml_, root_, name_, seed_, settings_.nvml));
  return {};
}

Status SimNode::KernelLine(const std::string& text) {
  const std::string path = root_ + "/dev/kmsg";
  auto log = machines::ReadFile(path);
  if (!log) return tl::unexpected(log.error());
  const auto lines = std::count(log->begin(), log->end(), '\n');
  const std::string sequence = std::to_string(500 + lines);
  return WriteText(path, *log + "3," + sequence + "," + sequence + "000000,-;" + text + "\n");
}

Status SimNode::Answer(const std::string& line) {
  const std::string path = root_ + "/machine/nvml.txt";
  BIMETAL_TRY_ASSIGN(const std::string text, machines::ReadFile(path));
  // The library takes the first line that fits.
  return WriteText(path, line + "\n" + text);
}

Status SimNode::WriteFile(const std::string& path, const std::string& text) {
  return WriteText(root_ + "/" + path, text);
}

Status SimNode::RemoveFolder(const std::string& path) {
  if (std::filesystem::remove_all(root_ + "/" + path) > 0) return {};
  return Fail(ErrorCode::kNotFound, path + ": is not in the machine");
}

const admission::Decision& SimNode::Look() {
  now_ = now_ + Seconds(1);
  if (!silent_) {
    const std::string vendor = machine_->Devices().empty() ? "" : machine_->Devices()[0].vendor;
    agent::InventoryOptions options;
    options.probe.command = {settings_.probe_program};
    options.probe.silence = settings_.probe_silence;
    options.nvidia = vendor == "nvidia";
    options.amd = vendor == "amd";
    const agent::Inventory inventory = agent::ReadInventory(root_, options);
    inventory_ = agent::ToApi(inventory);
    if (retell_) retell_(inventory_);
    report_ = ReportOf(inventory_, vendor, inventory.boot_id.known() ? inventory.boot_id.value : "",
                       now_);
  }
  Decide(std::nullopt);
  return decision_;
}

const admission::Decision& SimNode::Settle() {
  for (int round = 0; round < kMostRounds && decision_.start_run; ++round) Decide(RunKernels());
  return decision_;
}

void SimNode::Decide(std::optional<admission::Run> run) {
  admission::Facts facts;
  const auto vendor = core::ParseVendor(machine_->Devices().at(0).vendor);
  facts.vendor = vendor.value_or(core::Vendor::kNvidia);
  facts.revalidate = revalidate_;
  facts.report = report_;
  if (run) {
    // As the operator sees it: the pod is there when its run comes in.
    admission::RunPod pod;
    pod.id = run->id;
    pod.created = now_;
    facts.pod = pod;
    facts.run = std::move(run);
  }
  decision_ = admission::Decide(facts, memory_, settings_.policy, now_);
  memory_ = decision_.memory;
  if (!facts.run) return;
  // The run is judged; the pod goes, and what follows is decided without it.
  facts.run.reset();
  facts.pod.reset();
  decision_ = admission::Decide(facts, memory_, settings_.policy, now_);
  memory_ = decision_.memory;
}

admission::Run SimNode::RunKernels() {
  kernels::RunOptions options;
  options.run_id = name_ + "-run-" + std::to_string(++runs_);
  options.fingerprint = report_->fingerprint;
  options.backend = kernels::BackendKind::kHost;
  options.vendor = machine_->Devices().at(0).vendor;
  options.machine = root_;
  for (const auto& id : decision_.run_devices) options.devices.push_back(id.value);
  options.level = settings_.level;
  for (const kernels::Check& check : kernels::AllChecks()) {
    const auto& wanted = settings_.checks;
    const bool named = std::find(wanted.begin(), wanted.end(), check.key) != wanted.end();
    if (wanted.empty() ? check.level <= options.level : named) options.checks.push_back(&check);
  }
  options.seed = static_cast<std::uint64_t>(seed_ * 1000 + runs_);
  options.memory_bytes = kTestBytes;
  options.timeout = std::chrono::milliseconds(settings_.run_timeout.v);
  options.grace = std::chrono::milliseconds(200);
  agent::RunReader reader;
  Status read;
  kernels::RunValidation(options, [&](const std::string& line) {
    if (read) read = reader.AddLine(line);
  });
  now_ = now_ + Seconds(1);
  report_->received = now_;
  api::ValidationRun run;
  // Lines that the agent refuses are no run: the pod ends without a result.
  if (read && reader.done()) run = reader.received().run;
  run.set_run(options.run_id);
  run.set_fingerprint(report_->fingerprint);
  if (tamper_) tamper_(run);
  std::vector<validation::DeviceFacts> devices;
  for (const api::Device& device : inventory_.devices()) {
    devices.push_back(validation::FactsFromApi(device));
  }
  judged_ = validation::Judge(run, devices,
                              {*settings_.table, settings_.overrides, *settings_.fleet, 5, ""});
  return ToAdmission(run, judged_);
}

std::set<std::string> SimNode::Open() const {
  std::set<std::string> open;
  for (const auto& id : decision_.open) open.insert(id.value);
  return open;
}

std::set<std::string> SimNode::Failed() const {
  std::set<std::string> failed;
  for (const auto& [id, record] : memory_.records) {
    if (!record.failed_check.empty()) failed.insert(id.value);
  }
  return failed;
}

std::vector<validation::RateSummary> SimNode::Rates() const {
  std::vector<validation::DeviceFacts> devices;
  for (const api::Device& device : inventory_.devices()) {
    devices.push_back(validation::FactsFromApi(device));
  }
  return validation::Summarize(judged_, devices, "");
}

}  // namespace bimetal::truth
