#pragma once

#include <string>

namespace bimetal::agent {

// The id of the running kernel's boot, which containers share with their node; empty where it
// cannot be read. Thread-safe.
std::string ReadOwnBootId();

}  // namespace bimetal::agent
