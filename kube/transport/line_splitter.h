#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bimetal::kube {

// Cuts a stream of bytes into lines, whatever the pieces it arrives in. One thread.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line_bytes) : max_(max_line_bytes) {}

  enum class Outcome { kMore, kStopped, kTooLong };

  // Hands each complete line to `on_line` (without the newline); kStopped when that returns false.
  template <class F>
  Outcome Feed(std::string_view bytes, F&& on_line) {
    while (true) {
      const std::size_t end = bytes.find('\n');
      if (end == std::string_view::npos) break;
      const std::string_view head = bytes.substr(0, end);
      if (rest_.size() + head.size() > max_) return Outcome::kTooLong;
      bytes.remove_prefix(end + 1);
      if (rest_.empty()) {
        if (!on_line(head)) return Outcome::kStopped;
      } else {
        rest_ += head;
        const bool go_on = on_line(std::string_view(rest_));
        rest_.clear();
        if (!go_on) return Outcome::kStopped;
      }
    }
    if (rest_.size() + bytes.size() > max_) return Outcome::kTooLong;
    rest_ += bytes;
    return Outcome::kMore;
  }

  // What stands after the last newline.
  const std::string& rest() const { return rest_; }

 private:
  std::size_t max_;
  std::string rest_;
};

}  // namespace bimetal::kube
