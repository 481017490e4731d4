#include "kube/codec/json.h"

#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "kube/codec/codec.h"

namespace bimetal::kube {
namespace {

using Json = nlohmann::ordered_json;

// Parses without exceptions and without recursion beyond the depth limit.
Result<Json> Parse(std::string_view text, const char* what) {
  bool too_deep = false;
  const auto check = [&too_deep](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxJsonDepth) too_deep = true;
    return !too_deep;
  };
  Json value = Json::parse(text, check, /*allow_exceptions=*/false);
  if (too_deep) return Fail(ErrorCode::kData, std::string(what) + ": nested too deeply");
  if (value.is_discarded()) return Fail(ErrorCode::kData, std::string(what) + ": malformed JSON");
  return value;
}

Result<Json> ParseObject(std::string_view text, const char* what) {
  BIMETAL_TRY_ASSIGN(Json value, Parse(text, what));
  if (!value.is_object()) return Fail(ErrorCode::kData, std::string(what) + ": expected an object");
  return value;
}

// Depth is bounded by Parse.
void Merge(Json& base, const Json& overlay) {
  for (const auto& [key, value] : overlay.items()) {
    if (value.is_null()) {
      base.erase(key);
    } else if (value.is_object()) {
      Json& target = base[key];
      if (!target.is_object()) target = Json::object();
      Merge(target, value);
    } else {
      base[key] = value;
    }
  }
}

// Length of the valid UTF-8 sequence that `text` begins with, 0 for none.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80u) return 1;
  if (first >= 0xC2u && first <= 0xDFu) return follows(1) ? 2 : 0;
  if (first >= 0xE0u && first <= 0xEFu) {
    const bool overlong = first == 0xE0u && byte(1) < 0xA0u;
    const bool surrogate = first == 0xEDu && byte(1) > 0x9Fu;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0u && first <= 0xF4u) {
    const bool overlong = first == 0xF0u && byte(1) < 0x90u;
    const bool too_high = first == 0xF4u && byte(1) > 0x8Fu;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_high ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  AppendJsonEscaped(out, text);
  out += '"';
  return out;
}

std::string JsonPatchReplaceStatus(const google::protobuf::Message& status, std::string_view uid) {
  return R"([{"op":"test","path":"/metadata/uid","value":)" + JsonString(uid) +
         R"(},{"op":"add","path":"/status","value":)" + ToJson(status) + "}]";
}

Result<std::string> OverlayJson(std::string_view base, std::string_view overlay) {
  Json merged = Json::object();
  if (!base.empty()) {
    BIMETAL_TRY_ASSIGN(merged, ParseObject(base, "base"));
  }
  BIMETAL_TRY_ASSIGN(const Json over, ParseObject(overlay, "overlay"));
  Merge(merged, over);
  return merged.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status CheckJson(std::string_view text) {
  BIMETAL_TRY(Parse(text, "document"));
  return {};
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    if (length == 0) out += "\xEF\xBF\xBD";
    out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace bimetal::kube
