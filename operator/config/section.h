#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::op {

// One mapping of the file with its path. Each reader takes one key, leaves `out` alone where the
// key is absent or null, and remembers the first error; Finish gives it, or names the first key
// that nobody read. Used on one thread, within one call of ParseConfig.
class Section {
 public:
  // `path` is empty for the document itself.
  Section(YAML::Node node, std::string path, std::optional<Error>* error);

  using Check = std::function<std::optional<std::string>(const std::string& value)>;

  void Read(const char* key, bool* out);
  // `check` gives what is wrong with the value ("is not a DNS name"), or nothing.
  void Read(const char* key, std::string* out, const Check& check);
  void Read(const char* key, Millis* out, Millis min, Millis max);
  void Read(const char* key, int* out, int min, int max);
  // The index of the value in `names`.
  std::optional<std::size_t> ReadChoice(const char* key,
                                        const std::vector<std::string_view>& names);
  void ReadSection(const char* key, const std::function<void(Section&)>& read);
  // A sequence of mappings, at most `max` of them.
  void ReadList(const char* key, std::size_t max, const std::function<void(Section&)>& read);
  // Reports `message` on this section as a whole.
  void Reject(const std::string& message);

  // Every key has been read: an unknown one is an error.
  void Finish();

 private:
  std::optional<YAML::Node> Take(const char* key);
  std::optional<std::string> TakeText(const char* key);
  std::string PathOf(std::string_view key) const;
  void Fail(std::string_view key, const std::string& message);

  YAML::Node node_;
  std::string path_;
  std::optional<Error>* error_;
  std::set<std::string> taken_;
};

// "core" of a message: the value in quotes, shortened, control characters replaced.
std::string Quoted(std::string_view value);

}  // namespace bimetal::op
