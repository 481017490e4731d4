// The dated tables: floors, AMD devices, Xids.
#include "agent/devices/data_tables.h"
#include "core/validation/floors.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  agent::ParseAmdModels(text);
  agent::ParseXids(text);
  if (const auto table = core::validation::FloorTable::Parse(text)) {
    for (const auto& row : table->rows()) Require(row.floor.value.v > 0);
  }
}
