#include "agent/devices/amd/card.h"

#include <array>
#include <cstdio>
#include <utility>

#include "agent/devices/amd/card_telemetry.h"
#include "agent/devices/data_tables.h"
#include "agent/devices/probe.h"

namespace bimetal::agent {
namespace {

using Firmware = std::map<std::string, std::string>;

std::string Hex(std::uint64_t value, const char* format) {
  std::array<char, 32> text;
  const int n =
      std::snprintf(text.data(), text.size(), format, static_cast<unsigned long long>(value));
  return std::string(text.data(), static_cast<std::size_t>(n));
}

// vbios_version and fw_version/*_fw_version; blocks of version 0 are not loaded and left out.
Reading<Firmware> ReadFirmware(const RootFiles& files, const std::string& folder) {
  Firmware blocks;
  const auto vbios = files.Text(folder + "/vbios_version");
  if (vbios.known()) blocks["vbios"] = vbios.value;
  constexpr std::string_view kSuffix = "_fw_version";
  for (const std::string& name : files.List(folder + "/fw_version").value) {
    if (!name.ends_with(kSuffix)) continue;
    const auto version = files.Text(folder + "/fw_version/" + name);
    if (!version.known() || version.value == "0x00000000") continue;
    blocks[name.substr(0, name.size() - kSuffix.size())] = version.value;
  }
  if (blocks.empty()) return SameGap<Firmware>(vbios);
  return Reading<Firmware>::Of(std::move(blocks));
}

// One RAS counter, `key` being "ue" (uncorrectable) or "ce".
Reading<std::int64_t> CountIn(const Reading<std::string>& text, const std::string& path,
                              std::string_view key) {
  if (!text.known()) return SameGap<std::int64_t>(text);
  for (const std::string_view line : Lines(text.value)) {
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(':')) continue;
    const auto count = ParseUnsigned(Trim(line.substr(key.size() + 1)));
    if (count && *count < (1u << 30)) {
      return Reading<std::int64_t>::Of(static_cast<std::int64_t>(*count));
    }
  }
  return Reading<std::int64_t>::Failed("no count in " + path);
}

// `total` plus `count`; a gap stays one.
void AddCount(const Reading<std::int64_t>& count, Reading<std::int64_t>& total) {
  if (!total.known()) return;
  if (count.known()) {
    total.value += count.value;
  } else {
    total = count;
  }
}

// "feature mask: 0x3fff"; 0 where the driver has switched it off. Nothing where it does not say.
std::optional<std::uint64_t> FeatureMask(const Reading<std::string>& features) {
  if (!features.known()) return std::nullopt;
  const auto at = features.value.find("feature mask:");
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(features.value).substr(at + 13);
  rest = Trim(rest.substr(0, rest.find('\n')));
  if (rest.starts_with("0x")) rest.remove_prefix(2);
  return ParseUnsigned(rest, 16);
}

void SetCounts(AmdCard& card, const Reading<std::int64_t>& reading) {
  card.fields.uncorrected_errors = card.telemetry.corrected_errors = reading;
}

// Lines "address : size : flag" of gpu_vram_bad_pages: R retired, P pending, F could not be.
void ReadBadPages(const RootFiles& files, const std::string& folder, Device& device) {
  constexpr std::size_t kMaxPages = 1024 * 1024;
  const std::string path = folder + "/ras/gpu_vram_bad_pages";
  const auto text = files.Text(path, kMaxPages);
  auto counts = text.known() || files.Exists(path) ? Reading<std::int64_t>::Of(0)
                                                   : SameGap<std::int64_t>(text);
  if (text.state == Known::kError) counts = SameGap<std::int64_t>(text);
  device.retired_rows = device.rows_pending = device.rows_failed = counts;
  if (!text.known()) return;  // empty: no bad page
  for (const std::string_view line : Lines(text.value)) {
    const auto colon = line.rfind(':');
    const std::string_view flag =
        colon == std::string_view::npos ? std::string_view() : Trim(line.substr(colon + 1));
    if (flag == "R") {
      ++device.retired_rows.value;
    } else if (flag == "P") {
      ++device.rows_pending.value;
    } else if (flag == "F") {
      ++device.rows_failed.value;
    } else {
      device.retired_rows = device.rows_pending = device.rows_failed =
          Reading<std::int64_t>::Failed("a line of " + path + " is not of its form");
      return;
    }
  }
}

void ReadRas(const RootFiles& files, AmdCard& card) {
  const std::string& folder = card.pci.folder;
  Device& device = card.fields;
  const auto names = files.List(folder + "/ras");
  if (!names.known()) {
    const std::string why = "the driver shows no ras folder";
    device.ecc = Reading<std::string>::Unknown(why);
    SetCounts(card, Reading<std::int64_t>::Unknown(why));
    device.retired_rows = device.rows_pending = device.rows_failed =
        Reading<std::int64_t>::Unknown(why);
    return;
  }
  const auto mask = FeatureMask(files.Text(folder + "/ras/features"));
  device.ecc = Reading<std::string>::Of(mask && *mask == 0 ? "off" : "on");
  ReadBadPages(files, folder, device);
  // Cards that sleep, or without the feature, print numbers that mean nothing.
  if (mask && *mask == 0) {
    SetCounts(card, Reading<std::int64_t>::Unknown("the driver has switched RAS off"));
    return;
  }
  if (IsAsleep(files, folder)) {
    SetCounts(card, Reading<std::int64_t>::Unknown("the GPU sleeps and is not woken for this"));
    return;
  }
  SetCounts(card, Reading<std::int64_t>::Of(0));
  for (const std::string& name : names.value) {
    if (!name.ends_with("_err_count")) continue;
    const std::string path = folder + "/ras/" + name;
    const auto text = files.Text(path);
    AddCount(CountIn(text, path, "ue"), device.uncorrected_errors);
    AddCount(CountIn(text, path, "ce"), card.telemetry.corrected_errors);
  }
}

void ReadLink(const RootFiles& files, const std::string& folder, Device& device) {
  device.link_generation = LinkGeneration(files.Text(folder + "/current_link_speed"));
  device.link_generation_max = LinkGeneration(files.Text(folder + "/max_link_speed"));
  device.link_width = files.Number(folder + "/current_link_width");
  device.link_width_max = files.Number(folder + "/max_link_width");
  // A lost PCI device answers all ones.
  if (device.link_width.known() && device.link_width.value > 32) {
    device.link_width = Reading<std::int64_t>::Failed("link width reads as " +
                                                      std::to_string(device.link_width.value));
  }
}

void ReadIdentity(const RootFiles& files, AmdCard& card) {
  const std::string& folder = card.pci.folder;
  Device& device = card.fields;
  const auto unique = files.Text(folder + "/unique_id");
  if (unique.known()) card.unique_id = ParseUnsigned(unique.value, 16).value_or(0);
  device.model = files.Text(folder + "/product_name");
  if (!device.model.known() && card.pci.device) device.model = ModelByPciId(*card.pci.device);
  if (card.pci.device) {
    device.architecture = ArchitectureByPciId(*card.pci.device);
    device.pci_id = Reading<std::string>::Of(AmdPciId(*card.pci.device));
  }
  device.cpus = files.Text(folder + "/local_cpulist");
  device.serial = files.Text(folder + "/serial_number");
  device.firmware = ReadFirmware(files, folder);
  device.memory_bytes = files.Number(folder + "/mem_info_vram_total");
  device.numa_node = files.Number(folder + "/numa_node");
  if (device.numa_node.known() && device.numa_node.value < 0) {
    device.numa_node = Reading<std::int64_t>::Unknown("the firmware names no NUMA node");
  }
  card.compute_mode = files.Text(folder + "/current_compute_partition");
  const auto memory_mode = files.Text(folder + "/current_memory_partition");
  if (card.compute_mode.known()) {
    device.partition = Reading<std::string>::Of(
        card.compute_mode.value + (memory_mode.known() ? "/" + memory_mode.value : ""));
  } else {
    device.partition = card.compute_mode;
  }
}

}  // namespace

AmdCard ReadCard(const RootFiles& files, PciGpu pci, ReadProgress& progress) {
  AmdCard card;
  card.pci = std::move(pci);
  ReadIdentity(files, card);
  const std::string step = "gpu " + card.pci.address;
  Device& device = card.fields;
  if (progress.ShouldSkip(kVendorStep) || progress.ShouldSkip(step)) {
    const std::string why = "left out: reading it hung or crashed before";
    SetCounts(card, Reading<std::int64_t>::Failed(why));
    device.retired_rows = device.rows_pending = device.rows_failed =
        Reading<std::int64_t>::Failed(why);
    device.ecc = Reading<std::string>::Failed(why);
    device.healthy = Reading<bool>::Of(false, "its driver does not answer");
    return card;
  }
  progress.Begin(step);
  ReadLink(files, card.pci.folder, device);
  CardTelemetry moving = ReadCardTelemetry(files, card.pci.folder);
  card.telemetry = std::move(moving.telemetry);
  card.xgmi_links_up = moving.xgmi_links_up;
  ReadRas(files, card);
  if (device.uncorrected_errors.known() && device.uncorrected_errors.value > 0) {
    device.healthy = Reading<bool>::Of(
        false, std::to_string(device.uncorrected_errors.value) + " uncorrectable memory errors");
  }
  return card;
}

void FillFromCard(const AmdCard& card, Device& device) {
  const Vendor vendor = device.vendor;
  device = card.fields;
  device.vendor = vendor;
}

std::optional<std::size_t> PartitionsInMode(const AmdCard& card) {
  if (!card.compute_mode.known()) return std::nullopt;
  const std::string& mode = card.compute_mode.value;
  if (mode == "SPX") return 1;
  if (mode == "DPX") return 2;
  if (mode == "TPX") return 3;
  if (mode == "QPX") return 4;
  if (mode != "CPX" || !card.pci.device) return std::nullopt;
  const auto model = FindAmdModel(*card.pci.device);
  if (!model || model->compute_dies < 2) return std::nullopt;
  return static_cast<std::size_t>(model->compute_dies);
}

Reading<std::string> ModelByPciId(std::uint64_t device) {
  if (const auto model = FindAmdModel(device)) return Reading<std::string>::Of(model->name);
  return Reading<std::string>::Of("AMD GPU 0x" + Hex(device, "%04llx"));
}

Reading<std::string> ArchitectureByPciId(std::uint64_t device) {
  if (const auto model = FindAmdModel(device)) {
    return Reading<std::string>::Of(model->gfx, "by PCI device id");
  }
  return Reading<std::string>::Unknown("kfd does not tell it, and the PCI id is not in our table");
}

std::string AmdPciId(std::uint64_t device) { return "1002:" + Hex(device, "%04llx"); }

std::string AmdUniqueName(std::uint64_t unique_id) { return "GPU-" + Hex(unique_id, "%016llx"); }

}  // namespace bimetal::agent
