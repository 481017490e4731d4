#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bimetal::agent {

// A GPU model by its PCI device id (data/amd_devices.csv).
struct AmdModel {
  std::string name;
  std::string gfx;
  int compute_dies = 1;  // partitions in CPX mode
};
std::optional<AmdModel> FindAmdModel(std::uint64_t pci_device);

// What an Xid number means (data/nvidia_xids.csv).
enum class XidClass { kFatal, kContained, kLink, kRecovery, kApplication, kNote };
struct XidMeaning {
  XidClass kind = XidClass::kContained;
  std::string remedy;
};
// Numbers that the table does not know are kContained.
XidMeaning FindXid(int number);

// Reads tables of the form of data/*.csv; lines that do not fit are left out. For tests.
std::map<std::uint64_t, AmdModel> ParseAmdModels(std::string_view csv);
std::map<int, XidMeaning> ParseXids(std::string_view csv);

// The tables as compiled in.
std::string_view AmdDevicesCsv();
std::string_view NvidiaXidsCsv();

}  // namespace bimetal::agent
