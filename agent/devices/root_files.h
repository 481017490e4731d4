#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/reading.h"

namespace bimetal::agent {

// The files of one machine under a root folder ("/" or a fixture tree). Links are followed as if
// the root were "/", so no path leads out of it. Only regular files are opened, never blocking, and
// no more than a limit is read: a FIFO, a device, a folder or a huge file is an error value.
// Immutable, safe to share between threads.
class RootFiles {
 public:
  explicit RootFiles(std::string root);

  const std::string& root() const { return root_; }

  // The file's text without trailing white space. Unknown: no such file, or empty. Error: not
  // readable, not a regular file, longer than `limit` bytes, or not text.
  Reading<std::string> Text(std::string_view path, std::size_t limit = 64 * 1024) const;

  // The file's bytes as they are. Unknown and error as for Text, but that bytes need not be text.
  Reading<std::string> Bytes(std::string_view path, std::size_t limit = 64 * 1024) const;

  // A kernel log: /dev/kmsg itself, read to its present end without waiting, or a regular file in
  // its form, of which the last `limit` bytes count. Bytes that are not text are kept.
  Reading<std::string> KernelLog(std::string_view path, std::size_t limit) const;

  // The file as one decimal number, or hex after 0x. Error also where it is no number.
  Reading<std::int64_t> Number(std::string_view path) const;

  // Names in a folder, sorted, without . and ..; at most 10,000. Unknown: no such folder.
  Reading<std::vector<std::string>> List(std::string_view folder) const;

  // Last component of a symbolic link's target. Unknown: no such link.
  Reading<std::string> LinkName(std::string_view path) const;

  bool Exists(std::string_view path) const;

 private:
  int Open(std::string_view path, int flags) const;

  std::string root_;
};

// Strict numbers: the whole text, no sign for unsigned, nothing else.
std::optional<std::uint64_t> ParseUnsigned(std::string_view text, int base = 10);
std::optional<std::int64_t> ParseSigned(std::string_view text);

// `text` without white space at both ends.
std::string_view Trim(std::string_view text);

// The lines of `text`, without their ends.
std::vector<std::string_view> Lines(std::string_view text);

}  // namespace bimetal::agent
