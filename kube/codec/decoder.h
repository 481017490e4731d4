#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>
#include <simdjson.h>

#include "core/base/result.h"
#include "kube/codec/type_info.h"

namespace bimetal::kube::codec_internal {

// One step of the way from the document's root to a value; a list on the stack, turned into text
// only when something is wrong.
struct Path {
  const Path* parent = nullptr;
  std::string_view name;
  long index = -1;

  std::string Text() const;
};

tl::unexpected<Error> FailAt(const Path& path, std::string_view what);
tl::unexpected<Error> FailAt(const Path& path, simdjson::error_code code);

// Decodes the object that `text` holds. `text` must have simdjson::SIMDJSON_PADDING readable bytes
// after its end. `path` is where it stands in the document.
Status DecodeText(simdjson::ondemand::parser& parser, std::string_view text, const TypeInfo& type,
                  google::protobuf::Message* out, const Path& path);

// True when all of the document has been read: nothing stands after the root value.
bool AtEnd(simdjson::ondemand::document& document);

// Fills what metadata can be read from an object that could not be decoded as a whole.
void DecodeMetadataOnly(std::string_view padded_text, google::protobuf::Message* out);

}  // namespace bimetal::kube::codec_internal
