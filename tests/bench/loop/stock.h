#pragma once

#include <vector>

// A model of the stock scheduler: pods one at a time in the order of their creation, each onto the
// fullest node that has room for it; what has no place is tried again when something came free. It
// knows no gangs: the pods of a part of one hold their devices until the rest has come.
namespace bimetal::bench {

struct StockGang {
  double created = 0, run_time = 0;  // seconds
  int pods = 1, devices_per_pod = 1;
  int vendor = 0;  // the stock scheduler takes no choice of two
};

struct StockOutcome {
  std::vector<double> started;  // by gang, when its last pod came; < 0: never
  double end = 0;               // when the last of those that started had ended
  double useful = 0;            // device-seconds of whole gangs
  double held = 0;              // device-seconds of all pods that had a place, until `end`
  int stuck = 0;  // gangs of which a part holds devices for ever, or which never start
};

// `nodes[vendor]` nodes of `devices` each. `bind`: seconds from one pod to the next. Pure.
StockOutcome RunStock(const std::vector<int>& nodes, int devices,
                      const std::vector<StockGang>& gangs, double bind);

}  // namespace bimetal::bench
