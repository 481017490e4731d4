#include "api/generator/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace bimetal::api {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kFoldFrom = 80;

// A conservative subset of what YAML 1.1 and 1.2 both read as the same string without quotes.
bool IsPlain(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kReserved = {"true", "false", "yes", "no", "on",
                                                                "off",  "null",  "y",   "n"};
  if (text.empty() || text.back() == ' ') return false;
  const auto first = static_cast<unsigned char>(text.front());
  if (std::isalpha(first) == 0 && first != '/' && first != '.' && first != '$') return false;
  const auto is_safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view(" ._/()+-$").find(c) != std::string_view::npos;
  };
  if (!std::all_of(text.begin(), text.end(), is_safe)) return false;
  if (first == '.' && text.size() > 1 && std::isdigit(static_cast<unsigned char>(text[1])) != 0) {
    return false;
  }
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kReserved.begin(), kReserved.end(), lower) == kReserved.end() &&
         lower != ".inf" && lower != ".nan";
}

std::string JsonQuote(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xFU];
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7f;
  });
}

// Folding turns a newline into one space, so a text may be broken wherever one space stands alone.
bool IsFoldable(std::string_view text) {
  return text.size() > kFoldFrom && text.find('\n') == std::string_view::npos &&
         text.find("  ") == std::string_view::npos && text.front() != ' ' && text.back() != ' ' &&
         text.find(' ') != std::string_view::npos;
}

void AppendFolded(std::string_view text, const std::string& indent, std::string* out) {
  *out += ">-\n";
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > 0 && column + 1 + word.size() > kColumns) {
      *out += '\n';
      column = 0;
    }
    if (column == 0) {
      *out += indent;
      column = indent.size();
    } else {
      *out += ' ';
      ++column;
    }
    *out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  *out += '\n';
}

void AppendString(std::string_view text, const std::string& indent, std::string* out) {
  if (HasControlCharacter(text)) {
    *out += JsonQuote(text) + '\n';
  } else if (text.find('\n') != std::string_view::npos) {
    *out += JsonQuote(text) + '\n';
  } else if (IsFoldable(text)) {
    AppendFolded(text, indent, out);
  } else if (IsPlain(text)) {
    *out += text;
    *out += '\n';
  } else {
    *out += '\'';
    for (const char c : text) *out += c == '\'' ? std::string("''") : std::string(1, c);
    *out += "'\n";
  }
}

std::string Key(std::string_view key) {
  std::string out;
  AppendString(key, "", &out);
  out.pop_back();
  return out;
}

// Writes a value after "key:" or "-". Scalars go on the same line, the others on new ones.
void Append(const Document& document, const std::string& indent, bool in_list, std::string* out) {
  if (const auto* flag = document.AsBool()) {
    *out += *flag ? " true\n" : " false\n";
  } else if (const auto* number = document.AsInt()) {
    *out += ' ' + std::to_string(*number) + '\n';
  } else if (const auto* text = document.AsString()) {
    *out += ' ';
    AppendString(*text, indent + "  ", out);
  } else if (const auto* list = document.AsList()) {
    *out += list->empty() ? " []\n" : "\n";
    // Kubernetes' own style: a list stands at the column of its key.
    const std::string item_indent = in_list ? indent + "  " : indent;
    for (const auto& item : *list) {
      *out += item_indent + '-';
      Append(item, item_indent, true, out);
    }
  } else if (const auto* map = document.AsMap()) {
    if (map->empty()) *out += " {}\n";
    const std::string child_indent = indent + "  ";
    bool is_first = true;
    for (const auto& [key, value] : *map) {
      if (is_first && in_list) {
        *out += ' ';
      } else {
        if (is_first) *out += '\n';
        *out += child_indent;
      }
      is_first = false;
      *out += Key(key) + ':';
      Append(value, child_indent, false, out);
    }
  }
}

}  // namespace

std::string ToYaml(const Document& document) {
  const auto* map = document.AsMap();
  std::string out;
  if (map == nullptr || map->empty()) {
    Append(document, "", false, &out);
    return out.substr(1);
  }
  for (const auto& [key, value] : *map) {
    out += Key(key) + ':';
    Append(value, "", false, &out);
  }
  return out;
}

std::string ToJson(const Document& document) {
  if (const auto* flag = document.AsBool()) return *flag ? "true" : "false";
  if (const auto* number = document.AsInt()) return std::to_string(*number);
  if (const auto* text = document.AsString()) return JsonQuote(*text);
  std::string out;
  if (const auto* list = document.AsList()) {
    for (const auto& item : *list) out += (out.empty() ? "" : ",") + ToJson(item);
    return '[' + out + ']';
  }
  for (const auto& [key, value] : *document.AsMap()) {
    out += (out.empty() ? "" : ",") + JsonQuote(key) + ':' + ToJson(value);
  }
  return '{' + out + '}';
}

}  // namespace bimetal::api
