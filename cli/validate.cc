#include "cli/validate.h"

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/validate_plan.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "kube/config/yaml_json.h"

namespace bimetal::cli {
namespace {

constexpr std::chrono::seconds kLook{2};
constexpr Millis kPatience = Minutes(30);

Result<Answer> Wait(kube::Client& client, const std::string& node, const std::string& word,
                    const Clock& clock) {
  const Millis end = clock.Monotonic() + kPatience;
  while (true) {
    BIMETAL_TRY_ASSIGN(const api::GPUNode found, client.Get<api::GPUNode>("", node));
    if (const auto verdict = VerdictOn(found, word); verdict) {
      if (!verdict->admitted) {
        return Fail(ErrorCode::kInvalid, "node " + node + " is " + verdict->text);
      }
      return Answer{"node " + node + " is " + verdict->text + "\n", {}};
    }
    if (clock.Monotonic() >= end) {
      return Fail(ErrorCode::kDeadline,
                  "node " + node + ": no verdict within " + FormatDuration(kPatience) + "; it is " +
                      found.status().phase() + ": " + found.status().message());
    }
    std::this_thread::sleep_for(kLook);
  }
}

Result<api::ValidationProfile> ReadProfile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Fail(ErrorCode::kNotFound, "file " + path + " cannot be read");
  std::stringstream text;
  text << file.rdbuf();
  const auto json = kube::YamlToJson(text.str());
  if (!json) return tl::unexpected<Error>(WithContext(json.error(), "file " + path));
  api::ValidationProfile profile;
  if (const Status read = kube::FromJson(*json, &profile); !read) {
    return tl::unexpected<Error>(WithContext(read.error(), "file " + path));
  }
  if (profile.metadata().name().empty()) {
    return Fail(ErrorCode::kInvalid, "file " + path + ": metadata.name is missing");
  }
  return profile;
}

}  // namespace

std::string RevalidateWord(const std::string& level, TimePoint now) {
  return (level.empty() ? "" : level + " ") + FormatTime(now);
}

std::optional<Verdict> VerdictOn(const api::GPUNode& node, const std::string& word) {
  const auto& status = node.status();
  if (status.vendors().empty()) return std::nullopt;
  for (const auto& vendor : status.vendors()) {
    // A node whose word has an annotation beside it remembers both.
    if (!vendor.revalidated().starts_with(word)) return std::nullopt;
    if (vendor.phase() == "Validating" || vendor.phase() == "Discovered") return std::nullopt;
    for (const auto& record : vendor.records()) {
      if (!record.due().empty() && vendor.phase() != "Lost" && vendor.inconclusive_runs() == 0) {
        return std::nullopt;  // in quarantine, and under way
      }
    }
  }
  Verdict out;
  out.admitted = status.phase() == "Admitted";
  out.text = status.phase() + " (" + status.reason() + "): " + status.message();
  return out;
}

Result<Answer> Validate(const CommandLine& line, kube::Client& client, const Clock& clock) {
  const std::string word = RevalidateWord(line.level, clock.Now());
  BIMETAL_TRY(client.Patch<api::GPUNode>(
      "", line.node, R"({"spec":{"revalidate":)" + kube::JsonString(word) + "}}",
      kube::PatchType::kMerge));
  if (line.wait) return Wait(client, line.node, word, clock);
  return Answer{"node " + line.node + " will be validated again (spec.revalidate: " + word + ")\n",
                "kubectl get gpunode " + line.node + " -w shows the verdict"};
}

Result<Answer> TryProfile(const CommandLine& line, kube::Client& client, const Clock& clock) {
  BIMETAL_TRY_ASSIGN(const api::ValidationProfile profile, ReadProfile(line.profile));
  BIMETAL_TRY_ASSIGN(const auto pools, client.ListAll<api::GPUPool>());
  BIMETAL_TRY_ASSIGN(const auto nodes, client.ListAll<api::GPUNode>());
  BIMETAL_TRY_ASSIGN(const auto plan, PlanProfile(profile, pools.items, nodes.items, clock.Now()));
  return RenderPlan(profile, plan);
}

}  // namespace bimetal::cli
