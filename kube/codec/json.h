#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "core/base/result.h"

namespace bimetal::kube {

// Nesting deeper than this is refused everywhere in the codec.
inline constexpr int kMaxJsonDepth = 100;

// `text` as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

// A JSON patch that replaces the whole status of the object with this uid and of no other:
// [{"op":"test","path":"/metadata/uid",...},{"op":"add","path":"/status","value":...}].
std::string JsonPatchReplaceStatus(const google::protobuf::Message& status, std::string_view uid);

// `base` with `overlay` laid over it: objects are merged key by key, everything else (arrays too)
// is replaced, null removes the key. Key order: that of base, then new keys of overlay. An empty
// base is {}. Errors: kData where either is not a JSON object, or is too deep.
Result<std::string> OverlayJson(std::string_view base, std::string_view overlay);

// {} if `text` is one whole JSON value of no more than kMaxJsonDepth levels. Errors: kData.
Status CheckJson(std::string_view text);

// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace bimetal::kube
