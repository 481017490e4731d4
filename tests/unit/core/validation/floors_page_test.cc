// docs/reference/floors.md is made from the data; this test holds it to them. To write it anew:
// BIMETAL_UPDATE_DOCS=1 core_validation_test --gtest_filter='FloorsPage*'
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "core/validation/floors.h"

namespace bimetal::core::validation {
namespace {

constexpr std::string_view kIntroduction = R"(# Floors

The rate below which a device of a model fails its validation, by check. This page is made from
`core/validation/data/floors.csv`; a test keeps it true. How rates are judged: [validation](../explanation/validation.md).

- **Binding** floors decide: a device whose 5th percentile lies below is quarantined. **Advisory** ones were measured with a
  vendor's library, not with our kernels; they are shown beside the rate and decide nothing.
- `hbm-triad` follows a rule: the greater of the public floor and 0.75 (NVIDIA) or 0.65 (AMD) of the data sheet's peak. Where
  the public figure is too low to mean anything, the note says so.
- `host-to-device` and `device-to-host` have no line here: each device owes 0.75 of its own PCIe link, at the
  generation and width at which it runs: 47.3 GB/s at gen5 x16, 23.6 at gen4 x16, 11.8 at gen3 x16.
- A part of a GPU (a MIG instance, AMD's DPX, QPX, CPX) has no built-in floor; nor has `peer-to-peer` without NVLink or xGMI.
- None of these figures has been measured with our kernels on hardware yet. Peaks are the data sheets' as commonly quoted, and
  were not read again.

To change a floor on a cluster, put it into the pool's ValidationProfile. It replaces the built-in one, and binds:

    spec:
      floors:
        - {model: "10de:2330", check: hbm-triad, value: "2900", source: "our fleet, March"}
        - {model: NVIDIA L4, check: hbm-copy, value: "230"}
        - {model: "10de:2330", check: peer-to-peer, value: "0"}   # 0: no floor

`model` is a PCI id or the name that `kubectl get gpunodes` shows; `value` is in GB/s, TFLOPS or us, as the check measures. For
`launch-latency` it is the highest 95th percentile that is no failure. Such floors hold for parts of a GPU too.

)";

std::string Percent(Milli part, Milli whole) {
  return std::to_string((part.v * 100 + whole.v / 2) / whole.v) + " %";
}

std::string Cell(const std::optional<Milli>& value) { return value ? FormatMilli(*value) : "-"; }

std::string Page(const FloorTable& table) {
  std::string page(kIntroduction);
  for (const ModelRow& model : table.models()) {
    page += "## " + model.names.front() + "\n\nPCI";
    for (const std::string& id : model.pci_ids) page += " `" + id + "`";
    page +=
        "\n\n| check | floor | of peak | peak | public floor | unit | kind | source | as of | note "
        "|\n";
    page += "| --- | ---: | ---: | ---: | ---: | --- | --- | --- | --- | --- |\n";
    for (const FloorRow& row : table.rows()) {
      if (row.model != model.key) continue;
      const Floor& floor = row.floor;
      page += "| " + row.check + " | " + FormatMilli(floor.value) + " | " +
              (floor.peak ? Percent(floor.value, *floor.peak) : "-") + " | " + Cell(floor.peak) +
              " | " + Cell(row.vendor_floor) + " | " + std::string(FindRateCheck(row.check)->unit) +
              " | " + (floor.binding ? "binding" : "advisory") + " | " + floor.source + " | " +
              row.date + " | " + row.note + " |\n";
    }
    page += "\n";
  }
  page.pop_back();
  return page;
}

TEST(FloorsPageTest, ThePageSaysWhatTheDataSay) {
  const char* root = std::getenv("BIMETAL_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "run by ctest";
  const std::string path = std::string(root) + "/docs/reference/floors.md";
  const std::string page = Page(FloorTable::BuiltIn());
  if (std::getenv("BIMETAL_UPDATE_DOCS") != nullptr) std::ofstream(path) << page;
  std::ifstream file(path);
  const std::string found((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(found == page) << path << " is not what the data say; see the top of this test";
}

}  // namespace
}  // namespace bimetal::core::validation
