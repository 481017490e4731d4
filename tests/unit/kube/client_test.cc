#include "kube/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kubernetes.pb.h"
#include "tests/fakes/http_server.h"

namespace bimetal::kube {
namespace {

using test::HttpConnection;
using test::HttpRequest;
using test::HttpServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string StatusBody(int code, const std::string& reason, const std::string& message = "m") {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":")" + reason +
         R"(","message":")" + message + R"(","code":)" + std::to_string(code) + "}";
}

Client Connect(const HttpServer& server) {
  Config config;
  config.server = server.url();
  return Client(MakeTransport(config).value());
}

// A server with one answer.
HttpServer::Handler Answer(int status, const std::string& body,
                           const std::string& type = "application/json",
                           const std::map<std::string, std::string>& headers = {}) {
  return [=](const HttpRequest&, HttpConnection& c) { c.Respond(status, body, type, headers); };
}

TEST(ClientTest, EachBadListAnswerIsATypedErrorNamingVerbAndResource) {
  const struct {
    int status;
    std::string body;
    std::string type;
    ErrorCode code;
  } kCases[] = {
      {403, StatusBody(403, "Forbidden", "no rights"), "application/json", ErrorCode::kForbidden},
      {200, R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"spec":{}}]})",
       "application/json", ErrorCode::kData},
      {200, R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"meta)",
       "application/json", ErrorCode::kData},
      {200, "<html>a proxy's page</html>", "text/html", ErrorCode::kData},
      {502, "<html>a proxy's page</html>", "text/html", ErrorCode::kUnavailable},
      {200, StatusBody(200, ""), "application/json", ErrorCode::kData},
      {200, "", "application/json", ErrorCode::kData},
  };
  for (const auto& wanted : kCases) {
    HttpServer server(Answer(wanted.status, wanted.body, wanted.type));
    const auto list = Connect(server).ListAll<api::Pod>();
    ASSERT_FALSE(list) << wanted.body;
    EXPECT_EQ(list.error().code, wanted.code) << list.error().message;
    EXPECT_THAT(list.error().message, StartsWith("list pods: "));
  }
}

TEST(ClientTest, NullItemsAndNullFieldsAreFine) {
  HttpServer server(
      Answer(200, R"({"kind":"EventList","metadata":{"resourceVersion":"1"},"items":null})"));
  EXPECT_TRUE(Connect(server).ListAll<api::Event>());
  HttpServer event(Answer(200, R"({"kind":"Event","metadata":{"name":"e"},"count":null})"));
  EXPECT_TRUE(Connect(event).Get<api::Event>("ns", "e"));
}

TEST(ClientTest, ATooManyRequestsAnswerSaysHowLongToWait) {
  HttpServer server(Answer(429, "slow down", "text/plain", {{"Retry-After", "5"}}));
  const auto pod = Connect(server).Get<api::Pod>("ns", "p");
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kTooManyRequests);
  EXPECT_EQ(pod.error().retry_after_ms, 5000);
}

TEST(ClientTest, TellsAlreadyExistsFromConflict) {
  api::ConfigMap map;
  map.mutable_metadata()->set_name("a");
  map.mutable_metadata()->set_namespace_("ns");
  HttpServer exists(Answer(409, StatusBody(409, "AlreadyExists")));
  EXPECT_EQ(Connect(exists).Create(map).error().code, ErrorCode::kAlreadyExists);
  HttpServer conflict(Answer(409, StatusBody(409, "Conflict", "changed")));
  const auto updated = Connect(conflict).Update(map);
  EXPECT_EQ(updated.error().code, ErrorCode::kConflict);
  EXPECT_EQ(updated.error().message, "update configmaps ns/a: changed (409 Conflict)");
}

TEST(ClientTest, PagesUntilTheListIsWhole) {
  HttpServer server([](const HttpRequest& request, HttpConnection& c) {
    const std::string token = request.query("continue");
    const std::string next = token.empty() ? "a%b" : token == "a%25b" ? "c" : "";
    c.Respond(200, R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":")" + next +
                       R"("},"items":[{"metadata":{"name":"p)" + token + R"("}}]})");
  });
  const auto list = Connect(server).ListAll<api::Pod>({.ns = "n s", .page_size = 1});
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->resource_version, "7");
  EXPECT_EQ(server.requests()[0].target, "/api/v1/namespaces/n%20s/pods?limit=1");
}

TEST(ClientTest, AListWhoseSnapshotExpiresBeginsAgain) {
  int calls = 0;
  HttpServer server([&](const HttpRequest& request, HttpConnection& c) {
    ++calls;
    if (!request.query("continue").empty() && calls < 4) {
      c.Respond(410, StatusBody(410, "Expired"));
      return;
    }
    const std::string next = request.query("continue").empty() ? "more" : "";
    c.Respond(200, R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":")" + next +
                       R"("},"items":[{"metadata":{"name":"p)" + std::to_string(calls) +
                       R"("}}]})");
  });
  const auto list = Connect(server).ListAll<api::Pod>();
  ASSERT_TRUE(list) << list.error().message;
  // Nothing of the first snapshot is left.
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[0].metadata().name(), "p3");
  EXPECT_EQ(list->items[1].metadata().name(), "p4");
}

TEST(ClientTest, AListThatAlwaysExpiresGivesUp) {
  HttpServer server([](const HttpRequest& request, HttpConnection& c) {
    if (!request.query("continue").empty()) {
      c.Respond(410, StatusBody(410, "Expired"));
      return;
    }
    c.Respond(200,
              R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"x"},"items":[]})");
  });
  const auto list = Connect(server).ListAll<api::Pod>();
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kGone);
  EXPECT_LE(server.requests().size(), 8u);
}

TEST(ClientTest, WritesWhatTheApiServerExpects) {
  HttpServer server(Answer(200, R"({"metadata":{"name":"p","uid":"u"}})"));
  Client client = Connect(server);
  ASSERT_TRUE(client.Delete<api::Pod>(
      "ns", "p", {.uid = "u1", .grace_seconds = 0, .propagation = "Background"}));
  ASSERT_TRUE(client.Patch<api::Pod>("ns", "p", "{}", PatchType::kApply, "status"));
  ASSERT_TRUE(client.Patch<api::Node>("", "n", "[]", PatchType::kJson));
  api::Pod pod;
  pod.mutable_metadata()->set_namespace_("ns");
  pod.mutable_metadata()->set_name("p");
  pod.mutable_metadata()->set_uid("u1");
  pod.mutable_status()->set_phase("Failed");
  ASSERT_TRUE(client.ReplaceStatus(pod));
  ASSERT_TRUE(client.CreateRaw(InfoOf<api::Pod>(), "ns", R"({"x":1})"));
  const auto seen = server.requests();
  EXPECT_EQ(seen[0].method + " " + seen[0].target, "DELETE /api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(seen[0].body,
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u1"},)"
            R"("gracePeriodSeconds":0,"propagationPolicy":"Background"})");
  EXPECT_EQ(seen[1].target, "/api/v1/namespaces/ns/pods/p/status?fieldManager=bimetal&force=true");
  EXPECT_EQ(seen[1].headers.at("content-type"), "application/apply-patch+yaml");
  EXPECT_EQ(seen[2].target, "/api/v1/nodes/n?fieldManager=bimetal");
  EXPECT_EQ(seen[2].headers.at("content-type"), "application/json-patch+json");
  EXPECT_EQ(seen[3].method + " " + seen[3].target,
            "PATCH /api/v1/namespaces/ns/pods/p/status?fieldManager=bimetal");
  EXPECT_THAT(seen[3].body, HasSubstr(R"("path":"/metadata/uid","value":"u1")"));
  EXPECT_EQ(seen[4].body, R"({"x":1})");
  EXPECT_EQ(client.requests(), 5);
}

TEST(ClientTest, RefusesCallsThatWouldMeanAnotherObject) {
  HttpServer server(Answer(200, "{}"));
  Client client = Connect(server);
  // Without a name or a namespace these paths would name whole collections.
  EXPECT_EQ(client.Delete<api::Pod>("ns", "").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(client.Delete<api::Pod>("", "p").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(client.Get<api::Pod>("ns", "").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(client.ReplaceStatus(api::Pod()).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(server.requests().empty());
}

TEST(ClientTest, AStatusIsNotWrittenToAnotherUid) {
  HttpServer server([](const HttpRequest& request, HttpConnection& c) {
    if (request.method == "PATCH") {
      c.Respond(422, StatusBody(422, "Invalid", "the server rejected our request"));
    } else {
      c.Respond(200, R"({"metadata":{"name":"p","uid":"u2"}})");
    }
  });
  api::Pod pod;
  pod.mutable_metadata()->set_namespace_("ns");
  pod.mutable_metadata()->set_name("p");
  pod.mutable_metadata()->set_uid("u1");
  EXPECT_EQ(Connect(server).ReplaceStatus(pod).error().code, ErrorCode::kConflict);
  pod.mutable_metadata()->set_uid("u2");  // the same object: the status itself is refused
  EXPECT_EQ(Connect(server).ReplaceStatus(pod).error().code, ErrorCode::kInvalid);
}

TEST(ClientTest, AWatchGivesEventsBookmarksAndTheServersError) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked();
    c.Chunk(
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n");
    c.Chunk("{\"type\":\"ERROR\",\"object\":" + StatusBody(410, "Expired") + "}\n");
    c.Chunk("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"late\"}}}\n");
    c.EndChunked();
  });
  std::vector<std::string> seen;
  const Status status = Connect(server).Watch<api::Pod>(
      {.ns = "ns", .resource_version = "5"}, [&](WatchEvent<api::Pod> event) {
        seen.push_back(event.object.metadata().name() + "@" + event.resource_version);
        return true;
      });
  EXPECT_EQ(status.error().code, ErrorCode::kGone);
  EXPECT_THAT(seen, ElementsAre("a@", "@9"));
  const auto request = server.requests().at(0);
  EXPECT_EQ(request.query("watch"), "1");
  EXPECT_EQ(request.query("allowWatchBookmarks"), "true");
  EXPECT_EQ(request.query("resourceVersion"), "5");
}

TEST(ClientTest, BadBytesInALogAreReplacedAndTheLogGoesOn) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked(200, "text/plain");
    c.Chunk(
        "good\nb\xFF"
        "d\nstep 3\n");
    c.EndChunked();
  });
  std::vector<std::string> lines;
  ASSERT_TRUE(Connect(server).PodLog("ns", "p", "c", true, [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  }));
  EXPECT_THAT(lines, ElementsAre("good",
                                 "b\xEF\xBF\xBD"
                                 "d",
                                 "step 3"));
}

TEST(ResourceTest, MakesPathsAndKeys) {
  EXPECT_EQ(InfoOf<api::Node>().Path("", "a/b", "status"), "/api/v1/nodes/a%2Fb/status");
  EXPECT_EQ(InfoOf<api::Lease>().Path("x"), "/apis/coordination.k8s.io/v1/namespaces/x/leases");
  EXPECT_EQ(InfoOf<api::Lease>().Path(""), "/apis/coordination.k8s.io/v1/leases");
  EXPECT_EQ(InfoOf<api::Lease>().ApiVersion(), "coordination.k8s.io/v1");
  api::Pod pod;
  pod.mutable_metadata()->set_name("n");
  EXPECT_EQ(KeyOf(pod).Text(), "n");
  pod.mutable_metadata()->set_namespace_("s");
  EXPECT_EQ(KeyOf(pod).Text(), "s/n");
}

}  // namespace
}  // namespace bimetal::kube
