#include "kube/config/yaml_json.h"

#include <cstdlib>

#include <yaml-cpp/yaml.h>

#include "kube/codec/json.h"
#include "kube/config/yaml_check.h"

namespace bimetal::kube {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr int kMostDepth = 64;

// A decimal number as JSON writes them; all else stays text (octal, .inf, dates).
bool IsNumber(const std::string& text) {
  std::size_t i = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - begin;
  };
  const std::size_t start = i;
  if (digits() == 0 || (text[start] == '0' && i - start > 1)) return false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

std::string ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return JsonString(text);  // quoted
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return "null";
  }
  if (text == "true" || text == "True" || text == "TRUE") return "true";
  if (text == "false" || text == "False" || text == "FALSE") return "false";
  return IsNumber(text) ? text : JsonString(text);
}

Status Append(const YAML::Node& node, int depth, std::string* out) {
  if (depth > kMostDepth) return Fail(ErrorCode::kInvalid, "nested too deeply");
  if (out->size() > kMostBytes) return Fail(ErrorCode::kInvalid, "longer than 1 MiB");
  bool first = true;
  const auto comma = [&] {
    if (!first) *out += ',';
    first = false;
  };
  if (node.IsSequence()) {
    *out += '[';
    for (const auto& item : node) {
      comma();
      BIMETAL_TRY(Append(item, depth + 1, out));
    }
    *out += ']';
  } else if (node.IsMap()) {
    *out += '{';
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Fail(ErrorCode::kInvalid, "a key that is no text");
      comma();
      *out += JsonString(entry.first.Scalar()) + ":";
      BIMETAL_TRY(Append(entry.second, depth + 1, out));
    }
    *out += '}';
  } else {
    *out += node.IsScalar() ? ScalarToJson(node) : "null";
  }
  return {};
}

}  // namespace

Result<std::string> YamlToJson(std::string_view yaml) {
  if (yaml.size() > kMostBytes) return Fail(ErrorCode::kInvalid, "longer than 1 MiB");
  const std::string text(yaml);
  if (const auto checked = CheckYaml(text); !checked) {
    return tl::unexpected(WithContext(checked.error(), "not YAML"));
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    const YAML::Node* found = nullptr;
    for (const auto& document : documents) {
      if (document.IsNull()) continue;
      if (found != nullptr) return Fail(ErrorCode::kInvalid, "more than one document");
      found = &document;
    }
    if (found == nullptr) return Fail(ErrorCode::kInvalid, "no document");
    std::string out;
    BIMETAL_TRY(Append(*found, 0, &out));
    return out;
  } catch (const YAML::Exception& e) {
    return Fail(ErrorCode::kInvalid, std::string("not YAML: ") + e.what());
  }
}

}  // namespace bimetal::kube
