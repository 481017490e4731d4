#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "agent/devices/amd/amd_source.h"
#include "agent/devices/inventory.h"
#include "agent/devices/nvidia/nvidia_source.h"
#include "agent/devices/source.h"

namespace bimetal::agent {

// A folder that is gone with the test, and a few words to fill it.
class TestTree {
 public:
  // In memory where the system has such a folder: some trees have thousands of files.
  TestTree() {
    std::string name = "/dev/shm/bimetal-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      name = (std::filesystem::temp_directory_path() / "bimetal-test-XXXXXX").string();
      mkdtemp(name.data());
    }
    root_ = name;
  }
  ~TestTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TestTree(const TestTree&) = delete;
  TestTree& operator=(const TestTree&) = delete;

  const std::string& root() const { return root_; }
  std::string Path(const std::string& path) const { return root_ + "/" + path; }

  TestTree& Write(const std::string& path, const std::string& text) {
    MakeFolderOf(path);
    std::ofstream(Path(path), std::ios::binary) << text;
    return *this;
  }
  TestTree& Link(const std::string& path, const std::string& target) {
    MakeFolderOf(path);
    std::filesystem::create_symlink(target, Path(path));
    return *this;
  }
  TestTree& Fifo(const std::string& path) {
    MakeFolderOf(path);
    mkfifo(Path(path).c_str(), 0600);
    return *this;
  }
  void Remove(const std::string& path) { std::filesystem::remove_all(Path(path)); }

 private:
  void MakeFolderOf(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(Path(path)).parent_path());
  }
  std::string root_;
};

class FakeProgress final : public ReadProgress {
 public:
  bool ShouldSkip(std::string_view step) const override {
    return skipped.contains(std::string(step));
  }
  void Begin(std::string_view step) override { begun.emplace_back(step); }

  std::set<std::string> skipped;
  std::vector<std::string> begun;
};

inline SourceReport ReadAmd(const std::string& root) {
  FakeProgress progress;
  return MakeAmdSource(root)->Read(progress);
}

inline SourceReport ReadNvidia(const std::string& root) {
  FakeProgress progress;
  return MakeNvidiaSource({root, "", false})->Read(progress);
}

// An inventory read in this process: for trees, where no driver can hang.
inline Inventory ReadTree(const std::string& root) {
  Inventory inventory;
  AddReport(ReadAmd(root), Vendor::kAmd, inventory);
  AddReport(ReadNvidia(root), Vendor::kNvidia, inventory);
  FinishInventory(inventory);
  return inventory;
}

inline const Finding* FindCode(const std::vector<Finding>& findings, const std::string& code) {
  for (const Finding& finding : findings) {
    if (finding.code == code) return &finding;
  }
  return nullptr;
}

}  // namespace bimetal::agent
