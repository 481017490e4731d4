// Holds the whole tree against the table of rooms (table.h).
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/house/checks.h"
#include "tests/unit/house/table.h"

namespace bimetal::house {
namespace {

using ::testing::IsEmpty;

std::string Root() {
  const char* root = std::getenv("BIMETAL_SOURCE_DIR");
  return root != nullptr ? root : "";
}

template <class Check>
std::vector<std::string> OverAllSources(Check check) {
  std::vector<std::string> breaches;
  std::size_t files = 0;
  for (const Room& room : kRooms) {
    for (const File& source : ReadSources(Root(), room.name)) {
      ++files;
      for (std::string& breach : check(source)) breaches.push_back(std::move(breach));
    }
  }
  EXPECT_GT(files, 50U) << "BIMETAL_SOURCE_DIR must name the repository";
  return breaches;
}

TEST(HouseTest, EveryIncludeKeepsToTheTableOfRooms) {
  EXPECT_THAT(OverAllSources(CheckIncludes), IsEmpty());
}

TEST(HouseTest, CoreIsPure) { EXPECT_THAT(OverAllSources(CheckPurity), IsEmpty()); }

TEST(HouseTest, EveryCMakeLinkKeepsToTheTableOfRooms) {
  std::vector<File> lists;
  for (const Room& room : kRooms) {
    for (File& list : ReadCMakeLists(Root(), room.name)) lists.push_back(std::move(list));
  }
  ASSERT_GT(lists.size(), 3U);
  const Libraries libraries = FindLibraries(lists);
  std::vector<std::string> breaches;
  for (const File& list : lists) {
    for (std::string& breach : CheckLinks(list, libraries)) breaches.push_back(std::move(breach));
  }
  EXPECT_THAT(breaches, IsEmpty());
}

}  // namespace
}  // namespace bimetal::house
