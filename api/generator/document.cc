#include "api/generator/document.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <map>

namespace bimetal::api {
namespace {

constexpr double kLargestExactInteger = 9007199254740992.0;  // 2^53

bool FromValue(const google::protobuf::Value& value, Document* out) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kBoolValue:
      *out = Document(value.bool_value());
      return true;
    case google::protobuf::Value::kNumberValue: {
      const double number = value.number_value();
      if (std::trunc(number) != number || std::fabs(number) > kLargestExactInteger) return false;
      *out = Document(static_cast<std::int64_t>(number));
      return true;
    }
    case google::protobuf::Value::kStringValue:
      *out = Document(value.string_value());
      return true;
    case google::protobuf::Value::kListValue: {
      Document::List list;
      for (const auto& item : value.list_value().values()) {
        Document child;
        if (!FromValue(item, &child)) return false;
        list.push_back(std::move(child));
      }
      *out = Document(std::move(list));
      return true;
    }
    case google::protobuf::Value::kStructValue: {
      // protobuf's map has no order: sort, so that the same input gives the same bytes.
      const auto& fields = value.struct_value().fields();
      Document map;
      for (const auto& [key, item] :
           std::map<std::string, google::protobuf::Value>(fields.begin(), fields.end())) {
        Document child;
        if (!FromValue(item, &child)) return false;
        map.Set(key, std::move(child));
      }
      *out = std::move(map);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

Document& Document::Set(std::string_view key, Document value) {
  auto& map = std::get<Map>(value_);
  for (auto& [name, present] : map) {
    if (name == key) {
      present = std::move(value);
      return *this;
    }
  }
  map.emplace_back(std::string(key), std::move(value));
  return *this;
}

Document& Document::Set(std::string_view key, std::string_view value) {
  return Set(key, Document(std::string(value)));
}

const Document* Document::Find(std::string_view key) const {
  for (const auto& [name, value] : std::get<Map>(value_)) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool ParseJson(std::string_view text, Document* out) {
  google::protobuf::Value value;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), &value);
  return status.ok() && FromValue(value, out);
}

}  // namespace bimetal::api
