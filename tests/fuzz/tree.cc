#include "tests/fuzz/tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "tests/fuzz/fuzz.h"

namespace bimetal::fuzz {

Tree::Tree() {
  std::error_code none;
  std::string folder = std::filesystem::is_directory("/dev/shm", none) ? "/dev/shm" : "/tmp";
  folder += "/bimetal-fuzz-XXXXXX";
  Require(mkdtemp(folder.data()) != nullptr);
  root_ = folder;
}

Tree::~Tree() {
  std::error_code none;
  std::filesystem::remove_all(root_, none);
}

void Tree::Write(const std::string& path, std::string_view text) const {
  const std::string file = root_ + "/" + path;
  int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  Require(fd >= 0);
  Require(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  close(fd);
}

void Tree::WriteParts(const std::vector<std::string>& paths, std::string_view text) const {
  const std::vector<std::string> parts = Parts(text, paths.size());
  for (std::size_t i = 0; i < parts.size(); ++i) Write(paths[i], parts[i]);
}

}  // namespace bimetal::fuzz
