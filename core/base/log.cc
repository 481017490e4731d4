#include "core/base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>

#include "core/base/time.h"

namespace bimetal {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

// Length of the UTF-8 sequence that starts at `at`, 0 where the bytes are not UTF-8.
std::size_t Utf8Length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  std::size_t length = 0;
  unsigned min = 0, code = 0;
  if (first < 0x80) return 1;
  if ((first & 0xE0U) == 0xC0) {
    length = 2;
    min = 0x80;
    code = first & 0x1FU;
  } else if ((first & 0xF0U) == 0xE0) {
    length = 3;
    min = 0x800;
    code = first & 0x0FU;
  } else if ((first & 0xF8U) == 0xF0) {
    length = 4;
    min = 0x10000;
    code = first & 0x07U;
  } else
    return 0;
  if (at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80) return 0;
    code = (code << 6U) | (byte(at + i) & 0x3FU);
  }
  if (code < min || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return 0;
  return length;
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level = level; }

void AppendJsonEscaped(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t length = Utf8Length(text, at);
    if (length == 0) {
      out += "\\ufffd";
      ++at;
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escaped.data();
    } else {
      out.append(text.substr(at, length));
    }
    at += length;
  }
}

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  std::string line = R"({"time":")" + FormatMicroTime(SystemClock().Now()) + R"(","level":")";
  line += LevelName(level);
  line += R"(","msg":")";
  AppendJsonEscaped(line, message);
  line += '"';
  for (const auto& field : fields) {
    line += ",\"";
    AppendJsonEscaped(line, field.key);
    line += "\":";
    if (field.quoted) line += '"';
    AppendJsonEscaped(line, field.value);
    if (field.quoted) line += '"';
  }
  line += "}\n";
  // One write per line, so that lines of several threads do not mix.
  const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(written);
}

}  // namespace bimetal
