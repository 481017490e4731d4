// Lists and watch lines of a server.
#include "api/kubernetes.pb.h"
#include "kube/codec/codec.h"
#include "tests/fuzz/fuzz.h"

namespace {

class Sink final : public bimetal::kube::ItemSink {
 public:
  google::protobuf::Message* New() override {
    pod_.Clear();
    return &pod_;
  }
  bimetal::Status Done(google::protobuf::Message*) override { return {}; }
  bimetal::Status Failed(google::protobuf::Message*, bimetal::Error) override { return {}; }

 private:
  bimetal::api::Pod pod_;
};

}  // namespace

BIMETAL_FUZZ(text) {
  Sink sink;
  kube::ListFromJson(text, sink);
  api::Pod pod;
  kube::WatchLineFromJson(text, &pod);
  kube::ErrorFromAnswer(409, "application/json", "3", text, "create pods a/b");
}
