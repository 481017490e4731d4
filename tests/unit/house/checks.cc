#include "tests/unit/house/checks.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tests/unit/house/table.h"

namespace bimetal::house {
namespace {

const Room* RoomOf(const std::string& path) {
  for (const Room& room : kRooms) {
    if (IsIn(path, room.name)) return &room;
  }
  return nullptr;
}

bool MayUse(const std::string& user, const std::string& used) {
  const Room* room = RoomOf(user);
  if (room == nullptr || IsIn(used, room->name)) return true;
  return std::any_of(room->may_use.begin(), room->may_use.end(),
                     [&](const std::string& allowed) { return IsIn(used, allowed); });
}

bool BeginsWithAny(const std::string& text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& b) { return text.starts_with(b); });
}

bool IsAllowedIn(const ThirdParty& library, const std::string& folder) {
  return std::any_of(library.folders.begin(), library.folders.end(),
                     [&](const std::string& allowed) { return IsIn(folder, allowed); });
}

// The C++ library, and the C and POSIX headers that every machine of ours has.
bool IsStandard(const std::string& name) {
  if (name.find('/') == std::string::npos && !name.ends_with(".h")) return true;
  static const std::set<std::string> kPlain = {"dirent.h", "errno.h",  "fcntl.h", "netdb.h",
                                               "poll.h",   "signal.h", "spawn.h", "stdint.h",
                                               "stddef.h", "unistd.h", "sched.h"};
  return kPlain.contains(name) ||
         BeginsWithAny(name, {"sys/", "netinet/", "arpa/", "linux/", "net/"});
}

std::vector<std::string> CheckThirdPartyInclude(const File& source, const std::string& name) {
  for (const ThirdParty& library : kThirdParty) {
    const bool is_service = library.name == "gRPC" && name.ends_with(".grpc.pb.h");
    if (!is_service && !BeginsWithAny(name, library.includes)) continue;
    if (IsAllowedIn(library, FolderOf(source.path))) return {};
    return {source.path + ": includes " + name + "; " + library.name + " has no place there"};
  }
  if (IsStandard(name)) return {};
  return {source.path + ": includes " + name + ", which no line of the table knows"};
}

// The folders in which a CMake call's sources lie.
std::set<std::string> SourceFolders(const File& list, const Call& call) {
  const std::string base = FolderOf(list.path);
  std::set<std::string> folders;
  for (const std::string& argument : call.arguments) {
    if (!argument.ends_with(".cc") || argument.find('$') != std::string::npos) continue;
    const std::string folder = FolderOf(argument);
    folders.insert(folder.empty() ? base : base + "/" + folder);
  }
  if (folders.empty()) folders.insert(base);
  return folders;
}

std::optional<std::string> CheckTarget(const File& list, const std::set<std::string>& folders,
                                       const std::string& target, const Libraries& libraries) {
  for (const ThirdParty& library : kThirdParty) {
    if (!BeginsWithAny(target, library.targets)) continue;
    const bool allowed = std::any_of(folders.begin(), folders.end(),
                                     [&](const std::string& f) { return IsAllowedIn(library, f); });
    // The service's own library is made where the protocol is.
    const bool made_here = library.name == "gRPC" && IsIn(list.path, "api");
    if (allowed || made_here) return std::nullopt;
    return list.path + ": links " + target + "; " + library.name + " has no place in " +
           *folders.begin();
  }
  if (!target.starts_with("bimetal::")) return std::nullopt;
  const std::string name = target.substr(std::string("bimetal::").size());
  if (name == "warnings") return std::nullopt;
  const auto found = libraries.find(name);
  if (found == libraries.end()) {
    return list.path + ": links " + target + ", which no CMakeLists.txt defines";
  }
  if (MayUse(list.path, found->second)) return std::nullopt;
  return list.path + ": links " + target + " of " + found->second + ", which it may not use";
}

bool IsTarget(const std::string& word) {
  return word.find("::") != std::string::npos || word == "yaml-cpp" || word == "${CMAKE_DL_LIBS}";
}

}  // namespace

std::vector<std::string> CheckIncludes(const File& source) {
  std::vector<std::string> breaches;
  for (const std::string& name : Includes(source.text)) {
    const bool of_house = RoomOf(name) != nullptr && !name.ends_with(".grpc.pb.h");
    if (!of_house) {
      const auto found = CheckThirdPartyInclude(source, name);
      breaches.insert(breaches.end(), found.begin(), found.end());
    } else if (!MayUse(source.path, FolderOf(name))) {
      breaches.push_back(source.path + ": includes " + name + ", which " +
                         RoomOf(source.path)->name + " may not use");
    }
  }
  return breaches;
}

std::vector<std::string> CheckPurity(const File& source) {
  std::vector<std::string> breaches;
  if (!IsIn(source.path, "core")) return breaches;
  const std::string code = CodeOnly(source.text);
  for (const Impure& impure : kImpureInCore) {
    const auto& except = impure.except;
    if (std::find(except.begin(), except.end(), source.path) != except.end()) continue;
    if (HasWord(code, impure.word)) {
      breaches.push_back(source.path + ": uses " + impure.word + "; core is pure");
    }
  }
  for (const std::string& folder : kIntegerFolders) {
    for (const char* word : {"float", "double"}) {
      if (IsIn(source.path, folder) && HasWord(code, word)) {
        breaches.push_back(source.path + ": uses " + std::string(word) +
                           "; money and capacity are integers");
      }
    }
  }
  return breaches;
}

Libraries FindLibraries(const std::vector<File>& lists) {
  Libraries libraries;
  for (const File& list : lists) {
    for (const Call& call : Calls(list.text)) {
      if (call.arguments.empty()) continue;
      const std::string folder = *SourceFolders(list, call).begin();
      if (call.name == "bimetal_library" || call.name == "bimetal_proto") {
        libraries[call.arguments[0]] = folder;
      } else if (call.name == "bimetal_kernels") {
        libraries["module_" + call.arguments[0]] = FolderOf(list.path);
      } else if (call.name == "add_library" && call.arguments[0].starts_with("bimetal::")) {
        libraries[call.arguments[0].substr(9)] = FolderOf(list.path);
      }
    }
  }
  if (libraries.contains(kCoreLibrary)) libraries[kCoreLibrary] = kCoreLibraryFolder;
  return libraries;
}

std::vector<std::string> CheckLinks(const File& list, const Libraries& libraries) {
  std::vector<std::string> breaches;
  for (const Call& call : Calls(list.text)) {
    if (call.name != "bimetal_library" && call.name != "bimetal_program" &&
        call.name != "bimetal_proto" && call.name != "target_link_libraries") {
      continue;
    }
    const auto folders = SourceFolders(list, call);
    for (const std::string& argument : call.arguments) {
      if (!IsTarget(argument)) continue;
      if (auto breach = CheckTarget(list, folders, argument, libraries)) {
        breaches.push_back(*breach);
      }
    }
  }
  return breaches;
}

}  // namespace bimetal::house
