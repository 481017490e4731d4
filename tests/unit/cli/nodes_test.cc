#include "cli/nodes.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

api::GPUNode Node(const std::string& name, const std::string& phase, const std::string& reason) {
  api::GPUNode node;
  node.mutable_metadata()->set_name(name);
  auto& status = *node.mutable_status();
  status.set_phase(phase);
  status.set_reason(reason);
  status.set_vendor("amd");
  status.set_model("AMD Instinct MI300X");
  status.set_driver_version("6.12.12");
  status.set_device_count(8);
  status.set_validated_count(8);
  return node;
}

TEST(RenderNodes, ShowsWhyANodeIsShutAndNothingBelowAnOpenOne) {
  api::GPUNode open = Node("node-1", "Admitted", "Passed");
  open.mutable_status()->set_message("all checks passed");
  open.mutable_status()->set_simulated(true);
  api::GPUNode shut = Node("node-2", "Quarantined", "CheckFailed");
  shut.mutable_status()->set_validated_count(0);
  shut.mutable_status()->set_message("memory.pattern failed on device 3");
  EXPECT_EQ(RenderNodes({shut, open}),
            "NODE    PHASE        VENDOR  MODEL                            OPEN/DEVICES  DRIVER   "
            "REASON\n"
            "node-1  Admitted     amd     AMD Instinct MI300X (simulated)  8/8           6.12.12  "
            "Passed\n"
            "node-2  Quarantined  amd     AMD Instinct MI300X              0/8           6.12.12  "
            "CheckFailed\n"
            "  memory.pattern failed on device 3\n");
}

TEST(RenderNodes, AnAdmittedNodeWithAWithheldDeviceSaysSo) {
  api::GPUNode node = Node("n", "Admitted", "DeviceUnhealthy");
  node.mutable_status()->set_validated_count(7);
  node.mutable_status()->set_message("device 3: row remapping pending");
  const std::string text = RenderNodes({node});
  EXPECT_NE(text.find("7/8"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  device 3: row remapping pending\n"), std::string::npos) << text;
}

TEST(RenderNodes, UnknownIsNeverZero) {
  api::GPUNode node;
  node.mutable_metadata()->set_name("new");
  EXPECT_EQ(RenderNodes({node}),
            "NODE  PHASE  VENDOR  MODEL  OPEN/DEVICES  DRIVER  REASON\n"
            "new   ?      ?       ?      ?/?           ?       -\n"
            "  the operator has not written a status yet; is it running?\n");
}

}  // namespace
}  // namespace bimetal::cli
