#include "agent/state/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace bimetal::agent {
namespace {

class StateFileTest : public ::testing::Test {
 protected:
  StateFileTest() {
    std::string name = ::testing::TempDir() + "state-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~StateFileTest() override { std::filesystem::remove_all(folder_); }

  static SavedState Sample() {
    SavedState state;
    state.set_boot_id("b1");
    auto* order = state.add_orders();
    order->set_vendor("amd");
    order->add_open_devices("GPU-1");
    return state;
  }
  static void Write(const StateFile& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(file.path()).parent_path());
    std::ofstream(file.path(), std::ios::binary) << text;
  }

  std::string folder_;
};

TEST_F(StateFileTest, SavedStateIsReadBackAndTheFolderIsMade) {
  const StateFile file(folder_ + "/deep/er");
  ASSERT_TRUE(file.Save(Sample()));
  const auto loaded = file.Load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->SerializeAsString(), Sample().SerializeAsString());
}

TEST_F(StateFileTest, OnlyTheOwnerMayReadIt) {
  const StateFile file(folder_);
  ASSERT_TRUE(file.Save(Sample()));
  struct stat info {};
  ASSERT_EQ(stat(file.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(StateFileTest, MissingFileIsToldFromACorruptOne) {
  const StateFile file(folder_);
  EXPECT_EQ(file.Load().error().code, ErrorCode::kNotFound);
}

TEST_F(StateFileTest, EveryTruncationIsCorruptOrWhole) {
  const StateFile file(folder_);
  ASSERT_TRUE(file.Save(Sample()));
  std::ifstream in(file.path());
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t n = 0; n < whole.size(); ++n) {
    Write(file, whole.substr(0, n));
    const auto loaded = file.Load();
    ASSERT_FALSE(loaded) << n;
    EXPECT_EQ(loaded.error().code, ErrorCode::kData) << n;
  }
}

TEST_F(StateFileTest, GarbageIsCorrupt) {
  const StateFile file(folder_);
  for (const std::string& text : {std::string("null"), std::string("[]"), std::string("{}"),
                                  std::string("\0\xff\xfe", 3), std::string(100000, '[')}) {
    Write(file, text);
    const auto loaded = file.Load();
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, ErrorCode::kData);
  }
}

TEST_F(StateFileTest, FolderInTheFilesPlaceIsAnError) {
  const StateFile file(folder_);
  std::filesystem::create_directories(file.path());
  EXPECT_EQ(file.Load().error().code, ErrorCode::kData);
  EXPECT_FALSE(file.Save(Sample()));
}

}  // namespace
}  // namespace bimetal::agent
