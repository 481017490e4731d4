#pragma once

#include "agent/devices/source.h"

namespace bimetal::agent {

// Calls `visit(name, reading...)` for every Reading of a device, with the same field of each of
// `devices`. The one list of fields; names are those of the probe's report.
template <class Visit, class... Devices>
void VisitReadings(Visit&& visit, Devices&... devices) {
  visit("model", devices.model...);
  visit("architecture", devices.architecture...);
  visit("driver", devices.driver...);
  visit("serial", devices.serial...);
  visit("pci_address", devices.pci_address...);
  visit("pci_id", devices.pci_id...);
  visit("partition", devices.partition...);
  visit("parent", devices.parent...);
  visit("ecc", devices.ecc...);
  visit("firmware", devices.firmware...);
  visit("memory_bytes", devices.memory_bytes...);
  visit("compute_units", devices.compute_units...);
  visit("link_generation", devices.link_generation...);
  visit("link_generation_max", devices.link_generation_max...);
  visit("link_width", devices.link_width...);
  visit("link_width_max", devices.link_width_max...);
  visit("numa_node", devices.numa_node...);
  visit("cpus", devices.cpus...);
  visit("links", devices.links...);
  visit("uncorrected_errors", devices.uncorrected_errors...);
  visit("retired_rows", devices.retired_rows...);
  visit("rows_pending", devices.rows_pending...);
  visit("rows_failed", devices.rows_failed...);
  visit("healthy", devices.healthy...);
}

}  // namespace bimetal::agent
