#pragma once

namespace bimetal::agent {

// From now on gRPC's own messages are lines of our log. Call it once, at start.
void LogGrpcAsJson();

}  // namespace bimetal::agent
