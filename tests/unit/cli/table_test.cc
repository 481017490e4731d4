#include "cli/table.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

TEST(RenderTable, AlignsColumnsAndEndsLinesBare) {
  const Table table{{"NAME", "STATE", "AGE"},
                    {{{"two-vendors", "Running", "4m"}}, {{"x", "Pending", "10h"}}}};
  EXPECT_EQ(RenderTable(table),
            "NAME         STATE    AGE\n"
            "two-vendors  Running  4m\n"
            "x            Pending  10h\n");
}

TEST(RenderTable, AMissingOrEmptyCellIsADash) {
  const Table table{{"A", "B", "C"}, {{{"", "b"}}, {{"a", "", " \n"}}}};
  EXPECT_EQ(RenderTable(table),
            "A  B  C\n"
            "-  b  -\n"
            "a  -  -\n");
}

TEST(RenderTable, WidthIsThatOfTheTerminal) {
  const Table table{{"MODEL", "N"}, {{{"显卡显卡", "1"}}, {{"Größe", "2"}}, {{"a\xff", "3"}}}};
  EXPECT_EQ(RenderTable(table),
            "MODEL     N\n"
            "显卡显卡  1\n"
            "Größe     2\n"
            "a\uFFFD        3\n");
}

TEST(RenderTable, ANoteStandsBelowItsRowAndWidensNoColumn) {
  const Table table{{"NODE", "PHASE"},
                    {{{"n1", "Lost"}, "no report\nfor 5m "}, {{"n2", "Admitted"}}}};
  EXPECT_EQ(RenderTable(table, 2),
            "  NODE  PHASE\n"
            "  n1    Lost\n"
            "    no report for 5m\n"
            "  n2    Admitted\n");
}

TEST(RenderTable, CellsCannotMakeLinesOfTheirOwn) {
  const Table table{{"NODE", "REASON"}, {{{"n1\nn2  Admitted", "x", "beyond the header"}}}};
  EXPECT_EQ(RenderTable(table),
            "NODE             REASON\n"
            "n1 n2  Admitted  x\n");
}

TEST(RenderTable, WithoutRowsIsTheHeader) { EXPECT_EQ(RenderTable({{"A", "B"}, {}}), "A  B\n"); }

}  // namespace
}  // namespace bimetal::cli
