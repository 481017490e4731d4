// The agent's own configuration.
#include "agent/config/config.h"

#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  if (const auto config = agent::ParseAgentConfig(text)) {
    Require(!config->operator_endpoint.address.empty());
    Require(agent::DescribeAgentConfig(*config).find('\n') == std::string::npos);
  }
}
