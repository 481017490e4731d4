#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "core/base/result.h"

namespace bimetal::kube {

// A whole file of at most 1 MiB: certificates and tokens. Errors: kNotFound, kData.
inline Result<std::string> ReadSmallFile(const std::string& path) {
  constexpr std::streamsize kMax = 1 << 20;
  std::ifstream in(path, std::ios::binary);
  if (!in) return Fail(ErrorCode::kNotFound, path + ": cannot be read");
  std::string text(static_cast<std::size_t>(kMax), '\0');
  in.read(text.data(), kMax);
  if (in.bad() || in.gcount() == kMax) return Fail(ErrorCode::kData, path + ": cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace bimetal::kube
