// Lists and watch lines: the envelopes around objects.
#include <optional>

#include "api/meta.pb.h"
#include "kube/codec/codec.h"
#include "kube/codec/decoder.h"

namespace bimetal::kube {
namespace {

namespace od = simdjson::ondemand;
using codec_internal::AtEnd;
using codec_internal::DecodeMetadataOnly;
using codec_internal::DecodeText;
using codec_internal::FailAt;
using codec_internal::Path;
using google::protobuf::Message;

bool HasName(const Message& object) {
  const auto* field = object.GetDescriptor()->FindFieldByName("metadata");
  if (field == nullptr || field->message_type() != api::ObjectMeta::descriptor()) return false;
  const auto& meta =
      static_cast<const api::ObjectMeta&>(object.GetReflection()->GetMessage(object, field));
  return !meta.name().empty();
}

Status DecodeNamed(od::parser& parser, std::string_view text, Message* out, const Path& path) {
  BIMETAL_TRY(DecodeText(parser, text, TypeInfoOf(out->GetDescriptor()), out, path));
  if (!HasName(*out)) return FailAt(path, "metadata.name is missing");
  return {};
}

// Items are cut out first and decoded each by itself, so that a bad one cannot lose its neighbours.
Status DecodeItems(od::value& value, ItemSink& sink) {
  const Path path{nullptr, "items", -1};
  od::json_type found;
  if (const auto error = value.type().get(found)) return FailAt(path, error);
  if (found == od::json_type::null) return {};
  od::array array;
  if (const auto error = value.get_array().get(array)) return FailAt(path, "expected an array");
  od::parser parser;
  Path at{&path, {}, 0};
  for (auto element : array) {
    std::string_view text;
    od::value item;
    if (const auto error = element.get(item)) return FailAt(at, error);
    if (const auto error = item.type().get(found)) return FailAt(at, error);
    Message* out = sink.New();
    Status decoded;
    if (found == od::json_type::object) {
      od::object object;
      if (const auto error = item.get_object().get(object)) return FailAt(at, error);
      if (const auto error = object.raw_json().get(text)) return FailAt(at, error);
      decoded = DecodeNamed(parser, text, out, at);
    } else {
      decoded = FailAt(at, "expected an object");
    }
    if (decoded) {
      BIMETAL_TRY(sink.Done(out));
    } else {
      DecodeMetadataOnly(text, out);
      BIMETAL_TRY(sink.Failed(out, std::move(decoded).error()));
    }
    ++at.index;
  }
  return {};
}

Status DecodeListMeta(od::value& value, ListMeta& meta) {
  const Path path{nullptr, "metadata", -1};
  od::object object;
  if (value.get_object().get(object)) return FailAt(path, "expected an object");
  for (auto entry : object) {
    std::string_view key;
    if (const auto error = entry.unescaped_key().get(key)) return FailAt(path, error);
    std::string_view text;
    if (key == "resourceVersion" || key == "continue") {
      if (entry.value().get_string().get(text)) {
        return FailAt(Path{&path, key, -1}, "expected a string");
      }
      (key == "continue" ? meta.continue_token : meta.resource_version) = std::string(text);
    } else if (key == "remainingItemCount") {
      std::int64_t count = 0;
      if (!entry.value().get_int64().get(count)) meta.remaining = count;
    }
  }
  return {};
}

Result<WatchType> ParseType(std::string_view text) {
  if (text == "ADDED") return WatchType::kAdded;
  if (text == "MODIFIED") return WatchType::kModified;
  if (text == "DELETED") return WatchType::kDeleted;
  if (text == "BOOKMARK") return WatchType::kBookmark;
  if (text == "ERROR") return WatchType::kError;
  return Fail(ErrorCode::kData, "type: not a known type of watch event");
}

// A bookmark carries a version and nothing else that may be relied on: lists in it can be null and
// the spec absent, so only the version is read.
Result<std::string> BookmarkVersion(std::string_view text) {
  od::parser parser;
  od::document document;
  const simdjson::padded_string_view view(text.data(), text.size(),
                                          text.size() + simdjson::SIMDJSON_PADDING);
  std::string_view version;
  if (parser.iterate(view).get(document) ||
      document["metadata"]["resourceVersion"].get_string().get(version) || version.empty()) {
    return Fail(ErrorCode::kData, "object.metadata.resourceVersion is missing in a bookmark");
  }
  return std::string(version);
}

}  // namespace

Result<ListMeta> ListFromJson(std::string_view json, ItemSink& sink) {
  const simdjson::padded_string padded(json);
  od::parser parser;
  od::document document;
  if (const auto error = parser.iterate(padded).get(document)) return FailAt({}, error);
  od::object object;
  if (document.get_object().get(object)) return FailAt({}, "expected an object");
  ListMeta meta;
  bool has_items = false;
  std::string kind;
  for (auto entry : object) {
    std::string_view key;
    if (const auto error = entry.unescaped_key().get(key)) return FailAt({}, error);
    od::value value;
    if (const auto error = entry.value().get(value)) return FailAt(Path{nullptr, key, -1}, error);
    if (key == "items") {
      has_items = true;
      BIMETAL_TRY(DecodeItems(value, sink));
    } else if (key == "metadata") {
      BIMETAL_TRY(DecodeListMeta(value, meta));
    } else if (key == "kind") {
      std::string_view text;
      if (!value.get_string().get(text)) kind = std::string(text);
    }
  }
  if (!AtEnd(document)) return FailAt({}, "text after the end of the document");
  if (!has_items && !kind.ends_with("List")) {
    return Fail(ErrorCode::kData, "expected a list, found " + (kind.empty() ? "no kind" : kind));
  }
  if (meta.resource_version.empty()) {
    return Fail(ErrorCode::kData, "metadata.resourceVersion is missing in a list");
  }
  return meta;
}

Result<WatchLine> WatchLineFromJson(std::string_view line, Message* object) {
  object->Clear();
  const simdjson::padded_string padded(line);
  od::parser parser;
  od::document document;
  if (const auto error = parser.iterate(padded).get(document)) return FailAt({}, error);
  od::object envelope;
  if (document.get_object().get(envelope)) return FailAt({}, "expected an object");
  std::optional<WatchType> type;
  std::string_view text;
  for (auto entry : envelope) {
    std::string_view key;
    if (const auto error = entry.unescaped_key().get(key)) return FailAt({}, error);
    if (key == "type") {
      std::string_view name;
      if (entry.value().get_string().get(name)) {
        return Fail(ErrorCode::kData, "type: expected a string");
      }
      BIMETAL_TRY_ASSIGN(type, ParseType(name));
    } else if (key == "object") {
      od::object inner;
      if (entry.value().get_object().get(inner) || inner.raw_json().get(text)) {
        return Fail(ErrorCode::kData, "object: expected an object");
      }
    }
  }
  if (!AtEnd(document)) return FailAt({}, "text after the end of the document");
  if (!type) return Fail(ErrorCode::kData, "type is missing in a watch event");
  if (text.data() == nullptr) return Fail(ErrorCode::kData, "object is missing in a watch event");

  WatchLine result{*type, {}, {}};
  if (*type == WatchType::kBookmark) {
    BIMETAL_TRY_ASSIGN(result.resource_version, BookmarkVersion(text));
  } else if (*type == WatchType::kError) {
    result.error = ErrorFromAnswer(0, "application/json", "", text, "error event");
  } else {
    od::parser inner;
    const Path path{nullptr, "object", -1};
    if (Status decoded = DecodeNamed(inner, text, object, path); !decoded) {
      DecodeMetadataOnly(text, object);
      return tl::unexpected<Error>(std::move(decoded).error());
    }
  }
  return result;
}

}  // namespace bimetal::kube
