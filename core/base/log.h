#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace bimetal {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One key and value of a log line.
struct LogField {
  std::string_view key;
  std::string value;
  bool quoted = true;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), quoted(false) {}
  template <class N>
  requires(std::is_integral_v<N> && !std::is_same_v<N, bool>) LogField(std::string_view k, N v)
      : key(k), value(std::to_string(v)), quoted(false) {}
};

// Lines below this level are dropped. Set once at start.
void SetLogLevel(LogLevel level);

// Writes one JSON object as one line to standard error:
// {"time":"...","level":"info","msg":"node admitted","node":"n1"}. `message` is constant text, what
// varies goes into fields; no secret in either. Thread-safe.
void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

// Appends `text` to `out` as the inside of a JSON string; bytes that are not UTF-8 become U+FFFD.
void AppendJsonEscaped(std::string& out, std::string_view text);

}  // namespace bimetal
