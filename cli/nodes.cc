#include "cli/nodes.h"

#include <algorithm>

#include "cli/table.h"

namespace bimetal::cli {
namespace {

std::string OpenOfDevices(const api::GPUNodeStatus& status) {
  const auto number = [](bool known, int n) { return known ? std::to_string(n) : "?"; };
  return number(status.has_validated_count(), status.validated_count()) + "/" +
         number(status.has_device_count(), status.device_count());
}

std::string Known(const std::string& text) { return text.empty() ? "?" : text; }

// A node without a status has not been looked at yet.
std::string NoteOf(const api::GPUNode& node) {
  const auto& status = node.status();
  if (status.phase() == "Admitted" && status.reason() == "Passed") return {};
  if (!status.message().empty()) return status.message();
  return status.phase().empty() ? "the operator has not written a status yet; is it running?" : "";
}

}  // namespace

std::string RenderNodes(std::vector<api::GPUNode> nodes) {
  std::sort(nodes.begin(), nodes.end(), [](const api::GPUNode& a, const api::GPUNode& b) {
    return a.metadata().name() < b.metadata().name();
  });
  Table table{{"NODE", "PHASE", "VENDOR", "MODEL", "OPEN/DEVICES", "DRIVER", "REASON"}, {}};
  for (const api::GPUNode& node : nodes) {
    const auto& status = node.status();
    table.rows.push_back({{node.metadata().name(), Known(status.phase()), Known(status.vendor()),
                           Known(status.model()) + (status.simulated() ? " (simulated)" : ""),
                           OpenOfDevices(status), Known(status.driver_version()), status.reason()},
                          NoteOf(node)});
  }
  return RenderTable(table);
}

}  // namespace bimetal::cli
