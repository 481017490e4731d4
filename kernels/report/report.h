#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/outcome.h"

namespace bimetal::kernels {

struct ReportOptions {
  std::chrono::milliseconds timeout{30'000};  // of all attempts; an agent's restart fits in
  std::chrono::milliseconds attempt_timeout{5'000};
  std::chrono::milliseconds first_pause{200};  // doubled after each attempt
  std::chrono::milliseconds longest_pause{2'000};
};

// Sends the run's JSON lines over a Unix stream socket and waits for one reply line {"ok":true}. A
// connection that fails or stays silent is tried again, with all lines from the first: the receiver
// takes a run by its id. A reply {"ok":false,"error":"..."} is final. Error kFailed names the path.
Done SendReport(const std::string& path, const std::vector<std::string>& lines,
                const ReportOptions& options);

// The path of "unix:/path"; an error says what is wrong with it.
Outcome<std::string> ParseReportTarget(std::string_view target);

}  // namespace bimetal::kernels
