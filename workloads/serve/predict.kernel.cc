#include "kernels/device/portable.h"
#include "workloads/serve/predict_args.h"

namespace bimetal::kernels {

BM_KERNEL bm_predict(PredictArgs args) {
  const Range range = ThreadRange(args.outputs);
  for (uint64_t row = range.begin; row < range.end; row += range.step) {
    args.out[row] = AluWord(PredictNeuron(args.in, args.inputs, args.layer, row));
  }
}

}  // namespace bimetal::kernels

BM_MODULE(predict, BM_ENTRY(bm_predict, PredictArgs))
