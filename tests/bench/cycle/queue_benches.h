#pragma once

namespace bimetal::bench {

// Each prints its loads and one last line, NAME VALUE UNIT bar BAR; the exit status is 1 where a
// bar or a secondary condition is missed.
int P8();   // a reclaim of 1, 2,000 and 4,000 devices
int P15();  // 10,000 pending jobs of 30 shapes

}  // namespace bimetal::bench
