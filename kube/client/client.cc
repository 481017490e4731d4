#include "kube/client/client.h"

#include <atomic>

#include "kube/codec/json.h"

namespace bimetal::kube {
namespace {

using google::protobuf::Message;

constexpr int kMaxListRestarts = 3;

std::string What(std::string_view verb, const ResourceInfo& info, std::string_view ns,
                 std::string_view name) {
  std::string what = std::string(verb) + " " + info.plural;
  if (!info.group.empty()) what += "." + info.group;
  if (!ns.empty() || !name.empty()) what += " ";
  if (!ns.empty()) what += std::string(ns) + (name.empty() ? "" : "/");
  return what + std::string(name);
}

std::string Header(const Response& response, const std::string& name) {
  const auto it = response.headers.find(name);
  return it == response.headers.end() ? std::string() : it->second;
}

Error Refused(const Response& response, std::string_view what) {
  return ErrorFromAnswer(response.status, Header(response, "content-type"),
                         Header(response, "retry-after"), response.body, what);
}

bool IsSuccess(const Response& response) { return response.status >= 200 && response.status < 300; }

// "?a=b" and "&c=d"; empty values are left out.
class Query {
 public:
  Query& Add(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += std::string(key) + "=" + UrlEncode(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "";
}

Status DecodeAnswer(std::string_view body, Message* out, std::string_view what) {
  Status status = FromJson(body, out);
  if (!status) return tl::unexpected<Error>(WithContext(status.error(), what));
  return {};
}

std::string DeleteBody(const DeleteOptions& options) {
  std::string body = R"({"apiVersion":"v1","kind":"DeleteOptions")";
  if (!options.uid.empty()) {
    body += R"(,"preconditions":{"uid":)" + JsonString(options.uid) + "}";
  }
  if (options.grace_seconds) {
    body += R"(,"gracePeriodSeconds":)" + std::to_string(*options.grace_seconds);
  }
  if (!options.propagation.empty()) {
    body += R"(,"propagationPolicy":)" + JsonString(options.propagation);
  }
  return body + "}";
}

// A namespaced object must say where it lives, else the path would mean all namespaces.
Status CheckPlace(const ResourceInfo& info, std::string_view ns, std::string_view what) {
  if (!info.namespaced || !ns.empty()) return {};
  return Fail(ErrorCode::kInvalid, std::string(what) + ": no namespace is given");
}

Status CheckName(const ResourceInfo& info, std::string_view ns, std::string_view name,
                 std::string_view what) {
  BIMETAL_TRY(CheckPlace(info, ns, what));
  if (name.empty()) return Fail(ErrorCode::kInvalid, std::string(what) + ": no name is given");
  return {};
}

}  // namespace

struct Client::State {
  std::shared_ptr<Transport> transport;
  Millis deadline;
  std::atomic<std::int64_t> requests{0};

  // The body of a 2xx answer.
  Result<std::string> Call(Request request, std::string_view what, StopToken stop = {}) {
    ++requests;
    request.deadline = deadline;
    Result<Response> response = transport->Send(request, std::move(stop));
    if (!response) return tl::unexpected<Error>(WithContext(response.error(), what));
    if (!IsSuccess(*response)) return tl::unexpected<Error>(Refused(*response, what));
    return std::move(response->body);
  }

  Result<std::string> Send(std::string method, std::string path, std::string body,
                           std::string_view content_type, std::string_view what) {
    Request request;
    request.method = std::move(method);
    request.path_and_query = std::move(path);
    request.body = std::move(body);
    request.content_type = std::string(content_type);
    return Call(std::move(request), what);
  }
};

Client::Client(std::shared_ptr<Transport> transport, Millis deadline)
    : state_(std::make_shared<State>()) {
  state_->transport = std::move(transport);
  state_->deadline = deadline;
}

Client Client::WithDeadline(Millis deadline) const { return Client(state_->transport, deadline); }

std::int64_t Client::requests() const { return state_->requests; }

Result<std::string> Client::Raw(const Request& request, std::string_view what, StopToken stop) {
  return state_->Call(request, what, std::move(stop));
}

Status Client::GetInto(const ResourceInfo& info, std::string_view ns, std::string_view name,
                       Message* out) {
  const std::string what = What("get", info, ns, name);
  BIMETAL_TRY(CheckName(info, ns, name, what));
  BIMETAL_TRY_ASSIGN(const std::string body,
                     state_->Send("GET", info.Path(ns, name), "", "", what));
  return DecodeAnswer(body, out, what);
}

Result<std::string> Client::CreateRaw(const ResourceInfo& info, std::string_view ns,
                                      std::string_view json, std::string_view name,
                                      std::string_view subresource) {
  const std::string what = What("create", info, ns, name);
  BIMETAL_TRY(CheckPlace(info, ns, what));
  return state_->Send("POST", info.Path(ns, name, subresource), std::string(json),
                      "application/json", what);
}

Status Client::CreateInto(const ResourceInfo& info, const Message& object, Message* out) {
  const ObjectKey key = KeyOf(object);
  const std::string what = What("create", info, key.ns, key.name);
  BIMETAL_TRY(CheckPlace(info, key.ns, what));
  BIMETAL_TRY_ASSIGN(const std::string body, state_->Send("POST", info.Path(key.ns), ToJson(object),
                                                          "application/json", what));
  return DecodeAnswer(body, out, what);
}

Status Client::UpdateInto(const ResourceInfo& info, const Message& object, Message* out) {
  const ObjectKey key = KeyOf(object);
  const std::string what = What("update", info, key.ns, key.name);
  BIMETAL_TRY(CheckName(info, key.ns, key.name, what));
  BIMETAL_TRY_ASSIGN(
      const std::string body,
      state_->Send("PUT", info.Path(key.ns, key.name), ToJson(object), "application/json", what));
  return DecodeAnswer(body, out, what);
}

Status Client::PatchInto(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::string_view json, PatchType type, std::string_view subresource,
                         Message* out) {
  const std::string what = What("patch", info, ns, name);
  BIMETAL_TRY(CheckName(info, ns, name, what));
  Query query;
  query.Add("fieldManager", "bimetal");
  if (type == PatchType::kApply) query.Add("force", "true");
  BIMETAL_TRY_ASSIGN(const std::string body,
                     state_->Send("PATCH", info.Path(ns, name, subresource) + query.text(),
                                  std::string(json), ContentType(type), what));
  return DecodeAnswer(body, out, what);
}

Status Client::ReplaceStatusOf(const ResourceInfo& info, const Message& object) {
  const ObjectKey key = KeyOf(object);
  const std::string what = What("replace status of", info, key.ns, key.name);
  BIMETAL_TRY(CheckName(info, key.ns, key.name, what));
  const auto* field = object.GetDescriptor()->FindFieldByName("status");
  if (field == nullptr || field->message_type() == nullptr) {
    return Fail(ErrorCode::kInvalid, what + ": the kind has no status");
  }
  if (key.uid.empty()) return Fail(ErrorCode::kInvalid, what + ": the object has no uid");
  const std::string patch =
      JsonPatchReplaceStatus(object.GetReflection()->GetMessage(object, field), key.uid);
  const Result<std::string> body =
      state_->Send("PATCH", info.Path(key.ns, key.name, "status") + "?fieldManager=bimetal", patch,
                   ContentType(PatchType::kJson), what);
  if (body) return {};
  // The server reports a failed test as a request in error, in the same words as any other. A look
  // at the object tells which.
  if (body.error().code != ErrorCode::kInvalid) return tl::unexpected<Error>(body.error());
  const std::unique_ptr<Message> now(object.New());
  BIMETAL_TRY(GetInto(info, key.ns, key.name, now.get()));
  if (KeyOf(*now).uid != key.uid) {
    return Fail(ErrorCode::kConflict, what + ": the object of that name has another uid");
  }
  return tl::unexpected<Error>(body.error());
}

Status Client::DeleteOf(const ResourceInfo& info, std::string_view ns, std::string_view name,
                        const DeleteOptions& options) {
  const std::string what = What("delete", info, ns, name);
  BIMETAL_TRY(CheckName(info, ns, name, what));
  BIMETAL_TRY(
      state_->Send("DELETE", info.Path(ns, name), DeleteBody(options), "application/json", what));
  return {};
}

Result<std::string> Client::ListInto(const ResourceInfo& info, const ListOptions& options,
                                     ItemSink& sink, const std::function<void()>& restart,
                                     StopToken stop, std::int64_t* sent) {
  const std::string what = What("list", info, options.ns, "");
  std::string token;
  for (int restarts = 0;;) {
    Request request;
    request.path_and_query =
        info.Path(options.ns) + Query()
                                    .Add("labelSelector", options.label_selector)
                                    .Add("fieldSelector", options.field_selector)
                                    .Add("limit", std::to_string(options.page_size))
                                    .Add("continue", token)
                                    .text();
    if (sent != nullptr) ++*sent;
    Result<std::string> body = state_->Call(std::move(request), what, stop);
    if (!body) {
      // The snapshot behind the pages has expired. What was listed so far is dropped: going on from
      // the server's newer token would mix two states of the cluster.
      if (body.error().code != ErrorCode::kGone || token.empty() || ++restarts > kMaxListRestarts) {
        return body;
      }
      token.clear();
      if (restart) restart();
      continue;
    }
    Result<ListMeta> page = ListFromJson(*body, sink);
    if (!page) return tl::unexpected<Error>(WithContext(page.error(), what));
    if (page->continue_token.empty()) return std::move(page->resource_version);
    token = std::move(page->continue_token);
  }
}

Status Client::WatchInto(const ResourceInfo& info, const WatchOptions& options, Message* object,
                         const std::function<Result<bool>(const Result<WatchLine>&)>& on_line,
                         StopToken stop) {
  const std::string what = What("watch", info, options.ns, "");
  Request request;
  request.path_and_query =
      info.Path(options.ns) + Query()
                                  .Add("watch", "1")
                                  .Add("allowWatchBookmarks", "true")
                                  .Add("timeoutSeconds", std::to_string(options.timeout.v / 1000))
                                  .Add("resourceVersion", options.resource_version)
                                  .Add("labelSelector", options.label_selector)
                                  .Add("fieldSelector", options.field_selector)
                                  .text();
  // A server that does not keep its timeout is left a minute after it.
  request.deadline = options.timeout + Minutes(1);
  Status ended;
  const auto handle = [&](std::string_view text) {
    if (text.empty()) return true;
    Result<WatchLine> line = WatchLineFromJson(text, object);
    if (line && line->type == WatchType::kError) {
      ended = tl::unexpected<Error>(WithContext(std::move(line->error), what));
      return false;
    }
    if (!line) line = tl::unexpected<Error>(WithContext(line.error(), what));
    Result<bool> go_on = on_line(line);
    if (!go_on) ended = tl::unexpected<Error>(std::move(go_on).error());
    return go_on.value_or(false);
  };
  ++state_->requests;
  Result<Response> response = state_->transport->Stream(request, handle, std::move(stop));
  if (!ended) return ended;
  if (!response) return tl::unexpected<Error>(WithContext(response.error(), what));
  if (!IsSuccess(*response)) return tl::unexpected<Error>(Refused(*response, what));
  return {};
}

Status Client::PodLog(std::string_view ns, std::string_view name, std::string_view container,
                      bool follow, const std::function<bool(std::string_view)>& on_line,
                      StopToken stop) {
  const ResourceInfo pods{"", "v1", "Pod", "pods", true};
  const std::string what = What("read log of", pods, ns, name);
  BIMETAL_TRY(CheckName(pods, ns, name, what));
  Request request;
  request.path_and_query =
      pods.Path(ns, name, "log") +
      Query().Add("container", container).Add("follow", follow ? "true" : "").text();
  request.accept = "*/*";
  request.deadline = Millis{0};
  ++state_->requests;
  const auto handle = [&](std::string_view line) { return on_line(ReplaceInvalidUtf8(line)); };
  Result<Response> response = state_->transport->Stream(request, handle, std::move(stop));
  if (!response) return tl::unexpected<Error>(WithContext(response.error(), what));
  if (!IsSuccess(*response)) return tl::unexpected<Error>(Refused(*response, what));
  return {};
}

}  // namespace bimetal::kube
