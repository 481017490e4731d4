#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/fleet.pb.h"
#include "api/gpunode.pb.h"
#include "core/base/result.h"
#include "core/validation/rates.h"

namespace bimetal::core::validation {

// What floors depend on, of one device of a node.
struct DeviceFacts {
  std::string id;
  std::string model;      // as the driver names it
  std::string pci_id;     // "10de:2330"; empty: unknown
  std::string partition;  // "", "off", "SPX/NPS1": whole; all else: a part of a GPU
  std::optional<int> link_generation, link_width;          // as negotiated
  std::optional<int> link_generation_max, link_width_max;  // as possible
  // It has NVLink or xGMI to another device of the node or to a switch.
  bool direct_links = false;
};
DeviceFacts FactsFromApi(const api::Device& device);
// What is comparable of a vendor's devices on a node: model, PCI id and partition of the first one.
// Nothing where the node shows none.
std::optional<DeviceFacts> FactsFromApi(const api::GPUNodeStatus& status, std::string_view vendor);
// False for MIG instances and for AMD's modes other than SPX.
bool IsWhole(const DeviceFacts& device);

struct Floor {
  Milli value;  // the lowest value (for a latency: the highest) that is no failure
  std::string source;
  // Advisory: measured with a vendor's library, not with our kernel. Shown, never a failure.
  bool binding = true;
  // The data sheet's figure; nothing can be faster. Absent where unknown.
  std::optional<Milli> peak;
};

// One line of the data.
struct FloorRow {
  std::string model;  // key of the model
  std::string check;
  std::string unit;
  Floor floor;
  std::optional<Milli> vendor_floor;  // the public figure, where the rule replaced it
  std::string date, note;
};

struct ModelRow {
  std::string key;
  std::string vendor;                // nvidia | amd
  std::vector<std::string> pci_ids;  // "10de:2330"
  std::vector<std::string> names;    // as drivers name it
};

// The built-in floors, by model. Immutable.
class FloorTable {
 public:
  // Reads the form of data/floors.csv. Error kData names the line.
  static Result<FloorTable> Parse(std::string_view csv);
  // The table that is compiled in; a broken one ends the program (a test reads it).
  static FloorTable BuiltIn();

  // The model of a device: by PCI id, then by the driver's name. Null where unknown.
  const ModelRow* FindModel(const DeviceFacts& device) const;
  // The row of a whole device; null where there is none.
  const FloorRow* FindRow(const DeviceFacts& device, std::string_view check) const;

  const std::vector<ModelRow>& models() const& { return models_; }
  const std::vector<FloorRow>& rows() const& { return rows_; }
  // Not of a table that ends with the statement.
  const std::vector<ModelRow>& models() && = delete;
  const std::vector<FloorRow>& rows() && = delete;

 private:
  std::vector<ModelRow> models_;
  std::vector<FloorRow> rows_;
  std::map<std::string, std::size_t, std::less<>> by_pci_, by_name_;
  std::map<std::pair<std::string, std::string>, std::size_t> by_check_;
};

// Floors of a ValidationProfile; they replace or add to the built-in ones and always bind.
struct FloorOverride {
  std::string model;  // a driver's name, or a PCI id
  std::string check;
  Milli value;  // 0: no floor for this model and check
  std::string source;
};
// Error kInvalid names the field: "floors[2].value".
Result<std::vector<FloorOverride>> OverridesFromApi(const api::ValidationProfileSpec& profile);

// What a device's rate is held against: the profile's floor, else the link's (host-to-device,
// device-to-host: 0.75 of the peak at the negotiated generation and width), else the table's. A
// part of a GPU has no built-in floor. Nothing where none is known.
std::optional<Floor> FindFloor(const FloorTable& table, const std::vector<FloorOverride>& overrides,
                               const DeviceFacts& device, std::string_view check);

// One direction of a PCIe link without protocol overhead, in MB/s. Nothing for generations other
// than 1..6 and widths other than 1..32.
std::optional<Milli> LinkPeak(int generation, int width);

// The text of data/floors.csv.
std::string_view FloorsCsv();

}  // namespace bimetal::core::validation
