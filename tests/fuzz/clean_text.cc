// Texts of vendors on their way into reports, labels and names.
#include "agent/inventory/clean_text.h"

#include "agent/devices/labels.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  for (const std::size_t limit : {0, 1, 7, 1024}) {
    const std::string clean = agent::CleanText(text, limit);
    Require(clean.size() <= limit);
    Require(agent::CleanText(clean, limit) == clean);
    const std::string token = agent::CleanToken(text, limit);
    Require(token.size() <= limit);
    for (const char c : token) Require(c > ' ' && c < 0x7f);
  }
  const std::string label = agent::CleanLabel(text);
  Require(label.size() <= 63);
  Require(agent::CleanLabel(label) == label);
}
