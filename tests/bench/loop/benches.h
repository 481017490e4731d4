#pragma once

namespace bimetal::bench {

// Each prints its loads and one last line, NAME VALUE UNIT bar BAR; the exit status is 1 where a
// bar or a secondary condition is missed. `part`: one in so many of the jobs, for a short look; the
// bars are those of 1.
int P1(int part);
int P2(int part);
int P3(int part);
int P4(int part);
int P13(int part);

}  // namespace bimetal::bench
