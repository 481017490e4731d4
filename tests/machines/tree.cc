#include "tests/machines/tree.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace bimetal::machines {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "machine/manifest";

Status Failed(const std::string& what, const fs::path& path, const std::error_code& code) {
  return Fail(ErrorCode::kInternal, what + " " + path.string() + ": " + code.message());
}

Status WriteText(const fs::path& path, const std::string& text) {
  const auto old = ReadFile(path.string());
  if (old && *old == text) return {};
  const fs::path fresh = path.string() + ".new";
  {
    std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
    out << text;
    out.flush();
    if (!out) return Fail(ErrorCode::kInternal, "writing " + fresh.string());
  }
  std::error_code code;
  fs::rename(fresh, path, code);
  return code ? Failed("replacing", path, code) : Status{};
}

Status WriteLink(const fs::path& path, const std::string& target) {
  std::error_code code;
  if (fs::is_symlink(path, code) && fs::read_symlink(path, code) == fs::path(target)) return {};
  fs::remove(path, code);
  fs::create_symlink(target, path, code);
  return code ? Failed("linking", path, code) : Status{};
}

// A library that is open in a running agent must not be written into: replace, as above.
Status WriteCopy(const fs::path& path, const std::string& from) {
  BIMETAL_TRY_ASSIGN(const std::string bytes, ReadFile(from));
  return WriteText(path, bytes);
}

std::set<std::string> OldFiles(const std::string& root) {
  std::set<std::string> files;
  const auto text = ReadFile(root + "/" + kManifest);
  if (!text) return files;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    // A line that leads out of the root was not written by us.
    if (!line.empty() && line.front() != '/' && line.find("..") == std::string::npos) {
      files.insert(line);
    }
  }
  return files;
}

void RemoveWithEmptyFolders(const fs::path& root, const fs::path& path) {
  std::error_code code;
  fs::remove(path, code);
  for (fs::path at = path.parent_path(); at != root && !code; at = at.parent_path()) {
    if (!fs::is_empty(at, code) || code) return;
    fs::remove(at, code);
  }
}

}  // namespace

Status ApplyTree(const std::string& root, const Tree& tree) {
  const std::set<std::string> old = OldFiles(root);
  std::string manifest;
  for (const auto& [name, file] : tree) manifest += name + "\n";
  const fs::path base(root);
  std::error_code code;
  for (const std::string& name : old) {
    if (!tree.contains(name)) RemoveWithEmptyFolders(base, base / name);
  }
  for (const auto& [name, file] : tree) {
    const fs::path path = base / name;
    fs::create_directories(path.parent_path(), code);
    if (code) return Failed("making", path.parent_path(), code);
    switch (file.kind) {
      case File::Kind::kText:
        BIMETAL_TRY(WriteText(path, file.value));
        break;
      case File::Kind::kLink:
        BIMETAL_TRY(WriteLink(path, file.value));
        break;
      case File::Kind::kCopy:
        BIMETAL_TRY(WriteCopy(path, file.value));
        break;
    }
  }
  fs::create_directories(base / "machine", code);
  return WriteText(base / kManifest, manifest);
}

Result<std::string> ReadFile(const std::string& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return Fail(ErrorCode::kNotFound, "no file " + path);
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Fail(ErrorCode::kInternal, "reading " + path);
  return text.str();
}

}  // namespace bimetal::machines
