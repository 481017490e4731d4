#include "cli/replay.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "cli/text.h"
#include "core/queue/replay.h"

namespace bimetal::cli {
namespace {

Result<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  // Of a folder the opening succeeds and the reading fails.
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file && !file.eof()) return Fail(ErrorCode::kNotFound, "file " + path + " cannot be read");
  return std::move(text).str();
}

}  // namespace

Result<Answer> RunReplay(const CommandLine& line) {
  BIMETAL_TRY_ASSIGN(const std::string text, ReadWhole(line.file));
  const auto replay = core::queue::ReplayCycle(text);
  if (!replay) {
    return tl::unexpected<Error>(WithContext(replay.error(), "file " + line.file));
  }
  Answer answer;
  if (!replay->unread.empty()) {
    answer.note =
        "the snapshot is not read as it was recorded, another version may have written "
        "it: " +
        OneLine(replay->unread);
  }
  if (replay->difference.empty()) {
    answer.out = "same\n";
  } else {
    answer.out = "differs at " + OneLine(replay->difference) + "\n";
    answer.exit_status = kExitDiffers;
  }
  return answer;
}

}  // namespace bimetal::cli
