#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

// One dense layer of a small integer network: exact, so that every device gives the same answer.
struct PredictArgs {
  const uint32_t* in;
  uint32_t* out;
  uint64_t inputs;
  uint64_t outputs;
  uint64_t layer;
};

constexpr uint64_t kPredictLayers = 3;
constexpr uint64_t kPredictWidth = 256;  // neurons of each layer

// A weight between -8 and 7, made up from its place.
BM_INLINE int64_t PredictWeight(uint64_t layer, uint64_t row, uint64_t column) {
  return static_cast<int64_t>(Mix(layer << 40 | row << 20 | column) & 15) - 8;
}

// Neuron `row` of a layer: the weighted sum, nothing below zero, eight bits kept.
BM_INLINE uint32_t PredictNeuron(const uint32_t* in, uint64_t inputs, uint64_t layer,
                                 uint64_t row) {
  int64_t sum = 0;
  for (uint64_t column = 0; column < inputs; ++column) {
    sum += PredictWeight(layer, row, column) * static_cast<int64_t>(in[column]);
  }
  return sum < 0 ? 0 : static_cast<uint32_t>(sum >> 4) & 255;
}

// The first layer's activations for a request.
BM_INLINE uint32_t PredictInput(uint64_t request, uint64_t place) {
  return static_cast<uint32_t>(Mix(request ^ place << 32) & 255);
}

}  // namespace bimetal::kernels
