#include "kube/informer/store.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kubernetes.pb.h"

namespace bimetal::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class InformerStoreTest : public testing::Test {
 protected:
  static ObjectPtr Pod(const std::string& name, const std::string& uid,
                       const std::string& version) {
    auto pod = std::make_shared<api::Pod>();
    pod->mutable_metadata()->set_namespace_("ns");
    pod->mutable_metadata()->set_name(name);
    pod->mutable_metadata()->set_uid(uid);
    pod->mutable_metadata()->set_resource_version(version);
    return pod;
  }
  std::vector<std::string> Take() { return std::exchange(events_, {}); }

  std::vector<std::string> events_;
  InformerStore store_{[this](bool is_delete, const std::string& key, ObjectPtr object) {
    const ObjectKey k = KeyOf(*object);
    events_.push_back((is_delete ? "-" : "+") + key + "/" + k.uid + "@" + k.resource_version);
  }};
};

TEST_F(InformerStoreTest, AListDeletesWhatItNoLongerNames) {
  store_.BeginList();
  store_.Upsert(Pod("a", "u1", "1"));
  store_.Upsert(Pod("b", "u2", "2"));
  store_.EndList();
  EXPECT_THAT(Take(), ElementsAre("+ns/a/u1@1", "+ns/b/u2@2"));
  store_.BeginList();
  store_.Upsert(Pod("b", "u2", "2"));
  store_.EndList();
  EXPECT_THAT(Take(), ElementsAre("-ns/a/u1@1"));
}

TEST_F(InformerStoreTest, AListedObjectThatCannotBeReadIsNotDeleted) {
  store_.Upsert(Pod("a", "u1", "1"));
  Take();
  store_.BeginList();
  store_.Keep("ns/a");
  store_.EndList();
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(store_.size(), 1u);
}

TEST_F(InformerStoreTest, ANameMadeAnewIsADeleteThenAnUpsert) {
  store_.Upsert(Pod("train-0", "u1", "10"));
  store_.Upsert(Pod("train-0", "u2", "20"));
  EXPECT_THAT(Take(), ElementsAre("+ns/train-0/u1@10", "-ns/train-0/u1@10", "+ns/train-0/u2@20"));
}

TEST_F(InformerStoreTest, LateEventsOfAnOldUidNeverTouchTheNewObject) {
  store_.Upsert(Pod("train-0", "u1", "10"));
  store_.Upsert(Pod("train-0", "u2", "20"));
  Take();
  store_.Upsert(Pod("train-0", "u1", "30"));  // even with a version that looks newer
  store_.Delete(Pod("train-0", "u1", "31"));
  EXPECT_THAT(Take(), IsEmpty());
  store_.Upsert(Pod("train-0", "u2", "21"));
  EXPECT_THAT(Take(), ElementsAre("+ns/train-0/u2@21"));
}

TEST_F(InformerStoreTest, ADeleteOfAUidNeverSeenClosesThatUidOnly) {
  store_.Upsert(Pod("train-0", "u2", "20"));
  Take();
  store_.Delete(Pod("train-0", "u1", "15"));
  store_.Delete(Pod("train-0", "u1", "15"));
  EXPECT_THAT(Take(), ElementsAre("-ns/train-0/u1@15"));
  EXPECT_EQ(store_.size(), 1u);
}

TEST_F(InformerStoreTest, OldAndRepeatedVersionsAreDropped) {
  store_.Upsert(Pod("a", "u1", "9"));
  store_.Upsert(Pod("a", "u1", "10"));
  Take();
  store_.Upsert(Pod("a", "u1", "9"));
  store_.Upsert(Pod("a", "u1", "10"));
  EXPECT_THAT(Take(), IsEmpty());
  store_.Upsert(Pod("a", "u1", "not-a-number"));
  EXPECT_THAT(Take(), ElementsAre("+ns/a/u1@not-a-number"));
}

TEST_F(InformerStoreTest, ADeleteBearsTheLastState) {
  store_.Upsert(Pod("a", "u1", "1"));
  Take();
  store_.Delete(Pod("a", "u1", "7"));
  EXPECT_THAT(Take(), ElementsAre("-ns/a/u1@7"));
  EXPECT_EQ(store_.size(), 0u);
}

}  // namespace
}  // namespace bimetal::kube
