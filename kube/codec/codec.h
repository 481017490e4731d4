#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "core/base/result.h"

namespace bimetal::kube {

// JSON as Kubernetes writes it, mapped onto the protobuf types of api/ by reflection; the field
// options of api/options.proto decide the special cases. All functions are thread-safe.

// Reads one JSON object into `out`, whose old content is dropped. Unknown fields are ignored,
// except that a RAW field receives the JSON text of the object it stands in. null means absent.
// int64 are numbers; INT_OR_STRING and QUANTITY string fields accept numbers, INT_OR_STRING integer
// fields accept quoted ones. A message with the one field `repeated items` is a JSON array.
// Unknown parts are skipped, not validated beyond their brackets and strings.
// Errors: kData with the path: "spec.roles[0].replicas: expected an integer, found a string".
Status FromJson(std::string_view json, google::protobuf::Message* out);

// Writes `message`: unset and empty fields are left out, field order is that of the .proto, map
// keys are sorted, no white space. A message with the Kind option gets apiVersion and kind. A
// non-empty RAW field is written in place of its object's typed fields. Bytes that are not UTF-8
// become U+FFFD.
std::string ToJson(const google::protobuf::Message& message);

struct ListMeta {
  std::string resource_version;
  // Not empty: there are more pages.
  std::string continue_token;
  long long remaining = 0;
};

// Where the items of a list go. For each item: New() gives the message to fill, then Done() or
// Failed() ends it. Failed() gets what metadata could be read in `item`, and the error with path.
class ItemSink {
 public:
  virtual ~ItemSink() = default;
  virtual google::protobuf::Message* New() = 0;
  virtual Status Done(google::protobuf::Message* item) = 0;
  // Returning the error ends the decoding; returning {} skips the item.
  virtual Status Failed(google::protobuf::Message* item, Error error) = 0;
};

// Reads a list of Kubernetes ({"kind":"PodList","metadata":{...},"items":[...]}). `items: null` is
// an empty list; a document without metadata.resourceVersion or that is not a list is kData. An
// item without metadata.name goes to Failed().
Result<ListMeta> ListFromJson(std::string_view json, ItemSink& sink);

enum class WatchType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchLine {
  WatchType type = WatchType::kAdded;
  // kBookmark: the version to resume from; no object was decoded.
  std::string resource_version;
  // kError: what the server says, kGone for an expired version.
  Error error;
};

// Reads one line of a watch. `object` is filled for kAdded, kModified and kDeleted. Errors: kData;
// where only the object could not be decoded, `object` holds what metadata could be read.
Result<WatchLine> WatchLineFromJson(std::string_view line, google::protobuf::Message* object);

// The Error for an answer that is not a success: from the metav1.Status in `body` where there is
// one, else from the HTTP status. `retry_after` is the header's text or "". The message starts with
// `what` ("create pods train/p0") and ends with status and reason.
Error ErrorFromAnswer(int http_status, std::string_view content_type, std::string_view retry_after,
                      std::string_view body, std::string_view what);

}  // namespace bimetal::kube
