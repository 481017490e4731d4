#include "kernels/checks/math.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/checks/copies.h"
#include "kernels/checks/math_args.h"
#include "kernels/checks/modules.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint32_t kSegments = 16;
constexpr std::uint32_t kMaxLaunches = 12;
constexpr double kTwoPi = 6.283185307179586;

// How far a sound unit may be from the true value: `ulps` last places of the result, or `absolute`
// where the result is small. The widest of what NVIDIA's PTX ISA 9 (approx instructions: 2^-22 to
// 2^-23 relative, lg2 2^-22, sin and cos 2^-20.5 absolute) and AMD's CDNA 3 ISA (1 ulp) state, with
// room for the rounding of the arguments. Division and fp64 square root are rounded correctly,
// AMD's root to one last place.
struct Function {
  const char* name;
  std::size_t offset;  // in MathOutput
  bool wide;           // fp64
  double ulps;
  double absolute;
  double (*reference)(const MathInput& in);
};

constexpr auto kFunctions = std::to_array<Function>({
    {"exp2", offsetof(MathOutput, exp2), false, 4, 0,
     [](const MathInput& in) { return std::exp2(double{in.exponent}); }},
    {"log2", offsetof(MathOutput, log2), false, 4, 0x1p-21,
     [](const MathInput& in) { return std::log2(double{in.positive}); }},
    {"sin", offsetof(MathOutput, sine), false, 0, 0x1p-19,
     [](const MathInput& in) { return std::sin(kTwoPi * in.turns); }},
    {"cos", offsetof(MathOutput, cosine), false, 0, 0x1p-19,
     [](const MathInput& in) { return std::cos(kTwoPi * in.turns); }},
    {"rsqrt", offsetof(MathOutput, rsqrt), false, 4, 0,
     [](const MathInput& in) { return 1 / std::sqrt(double{in.positive}); }},
    {"rcp", offsetof(MathOutput, reciprocal), false, 2, 0,
     [](const MathInput& in) { return 1 / double{in.positive}; }},
    {"sqrt", offsetof(MathOutput, root), false, 4, 0,
     [](const MathInput& in) { return std::sqrt(double{in.positive}); }},
    {"fp32 division", offsetof(MathOutput, quotient), false, 0.5, 0,
     [](const MathInput& in) { return double{in.positive} / in.divisor; }},
    {"fp64 division", offsetof(MathOutput, quotient64), true, 0, 0,
     [](const MathInput& in) { return in.numerator / in.denominator; }},
    {"fp64 sqrt", offsetof(MathOutput, root64), true, 1, 0,
     [](const MathInput& in) { return std::sqrt(in.denominator); }},
});

// In [1, 2) times a power of two from 2^-20 to 2^20.
double Positive(std::uint64_t bits) {
  const double significand = 1 + static_cast<double>(bits >> 12) * 0x1p-52;
  return std::ldexp(significand, static_cast<int>(bits % 41) - 20);
}
// In [-limit, limit).
float Signed(std::uint64_t bits, double limit) {
  return static_cast<float>((static_cast<double>(bits >> 11) * 0x1p-52 - 1) * limit);
}

std::vector<MathInput> Grid(std::uint64_t seed) {
  std::vector<MathInput> grid(kSegments * kMathPoints);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const auto bits = [&](std::uint64_t salt) { return Mix(seed ^ Mix(i * 8 + salt)); };
    grid[i] = {static_cast<float>(Positive(bits(1))), Signed(bits(2), 20), Signed(bits(3), 0.5),
               static_cast<float>(Positive(bits(4))), Positive(bits(5)),   Positive(bits(6))};
  }
  return grid;
}

// The distance from `value` to the next number of its format, away from zero.
double LastPlace(double value, bool wide) {
  const double magnitude = std::fabs(value);
  if (wide) {
    return std::nextafter(magnitude, std::numeric_limits<double>::infinity()) - magnitude;
  }
  const auto single = static_cast<float>(magnitude);
  return double{std::nextafter(single, std::numeric_limits<float>::infinity())} - single;
}

struct State {
  CopyTally copies{4};
  std::uint64_t launches = 0;
  std::optional<std::uint64_t> silent;
  std::string out_of_bound;
  double worst = 0;  // largest error as a share of its bound
};

void JudgePoint(const MathInput& in, const std::byte* out, State* state) {
  for (const Function& function : kFunctions) {
    double found = 0;
    if (function.wide) {
      std::memcpy(&found, out + function.offset, 8);
    } else {
      float single = 0;
      std::memcpy(&single, out + function.offset, 4);
      found = single;
    }
    const double reference = function.reference(in);
    // Half a last place more or less falls to the double rounding of the reference itself.
    const double bound =
        std::max(function.absolute, function.ulps * 1.001 * LastPlace(reference, function.wide));
    const double error = std::fabs(found - reference);
    if (error <= bound) {
      if (bound > 0) state->worst = std::max(state->worst, error / bound);
    } else if (state->out_of_bound.empty()) {
      char text[160];
      std::snprintf(text, sizeof(text), "%s is %.17g, reference %.17g, bound %.3g", function.name,
                    found, reference, bound);
      state->out_of_bound = text;
    }
  }
}

Done RunRound(Device& device, const CheckRequest& request, std::uint64_t seed, State* state) {
  const DeviceInfo& info = device.info();
  const std::uint32_t units = std::max(1u, info.compute_units);
  const LaunchShape shape = info.simulated ? LaunchShape{std::max(units, 2 * kSegments), 1}
                                           : LaunchShape{units * info.blocks_per_unit, kMathPoints};
  const std::vector<MathInput> grid = Grid(seed);
  KERNELS_TRY_ASSIGN(const DeviceBuffer inputs,
                     DeviceBuffer::Make(device, grid.size() * sizeof(MathInput)));
  KERNELS_TRY_ASSIGN(
      const DeviceBuffer outputs,
      DeviceBuffer::Make(device, std::uint64_t{shape.blocks} * kMathPoints * sizeof(MathOutput)));
  KERNELS_TRY_ASSIGN(const DeviceBuffer records,
                     DeviceBuffer::Make(device, shape.blocks * sizeof(MathRecord)));
  KERNELS_TRY(device.Upload(inputs.get(), std::as_bytes(std::span(grid))));
  CopyTally copies(4);
  std::vector<std::uint64_t> found(shape.blocks * kMathPoints * sizeof(MathOutput) / 8);
  std::vector<MathRecord> ran(shape.blocks);
  for (std::uint32_t launch = 0; launch < kMaxLaunches; ++launch) {
    if (launch >= 3 && copies.units().size() >= units) break;
    static std::atomic<std::uint64_t> serial = 0;
    MathArgs args = {};
    args.inputs = inputs.address<MathInput>();
    args.outputs = outputs.address<MathOutput>();
    args.records = records.address<MathRecord>();
    args.token = Mix(++serial);
    args.mask = (args.token & 0xffffffffu) * 0x100000001ull;
    args.segments = kSegments;
    args.first_segment = launch * 5;
    KERNELS_TRY(LaunchWith(device, MathModule(), "bm_math", shape, args));
    KERNELS_TRY(device.Synchronize(request.deadline));
    KERNELS_TRY(device.Download(records.get(), std::as_writable_bytes(std::span(ran))));
    KERNELS_TRY(device.Download(outputs.get(), std::as_writable_bytes(std::span(found))));
    ++state->launches;
    for (std::uint64_t& word : found) word ^= args.mask;
    constexpr std::size_t kBytes = kMathPoints * sizeof(MathOutput);
    for (std::uint32_t block = 0; block < shape.blocks; ++block) {
      if (ran[block].token != Mix(args.token + block)) {
        state->silent = block;
        return Success();
      }
      copies.Add((args.first_segment + block) % kSegments, ran[block].unit,
                 std::as_bytes(std::span(found)).subspan(block * kBytes, kBytes));
    }
  }
  for (std::uint32_t segment = 0; segment < kSegments; ++segment) {
    const std::vector<std::byte>* results = copies.Majority(segment);
    if (results == nullptr) continue;
    for (std::uint32_t i = 0; i < kMathPoints; ++i) {
      JudgePoint(grid[segment * kMathPoints + i], results->data() + i * sizeof(MathOutput), state);
    }
  }
  state->copies = std::move(copies);
  return Success();
}

Outcome<CheckResult> Run(Device& device, const CheckRequest& request) {
  const std::uint32_t units = std::max(1u, device.info().compute_units);
  State state;
  CheckResult result;
  result.unit = "computeUnits";
  for (std::uint32_t round = 0; round < request.rounds; ++round) {
    KERNELS_TRY(RunRound(device, request, request.seed + round, &state));
    const auto wrong = state.copies.WrongUnits();
    result.value = std::to_string(state.copies.units().size());
    result.verdict = VerdictKind::kFail;
    if (state.silent) {
      result.evidence = "the device reported success, but block " + std::to_string(*state.silent) +
                        " left no result";
      return result;
    }
    if (!wrong.empty()) {
      result.evidence = DescribeWrongUnits(wrong, state.copies.units(), "segment", 4);
      return result;
    }
    if (!state.out_of_bound.empty()) {
      result.evidence = state.out_of_bound;
      if (state.copies.units().size() > 1) {
        // Hardware faults do not strike all units alike: the program or the driver does.
        result.verdict = VerdictKind::kInconclusive;
        result.evidence =
            "all units agree on results out of bound, so no unit is blamed: " + state.out_of_bound;
      }
      return result;
    }
    result.verdict = VerdictKind::kInconclusive;
    if (state.copies.units().size() < units) break;
    result.verdict = VerdictKind::kPass;
  }
  char text[160];
  std::snprintf(text, sizeof(text),
                "%s of %u compute units ran, %zu functions within %.1f %% of their bounds, "
                "identical in %llu launches",
                result.value.c_str(), units, kFunctions.size(), state.worst * 100,
                static_cast<unsigned long long>(state.launches));
  result.evidence = text;
  return result;
}

}  // namespace

CheckResult RunMath(Device& device, const CheckRequest& request) {
  return RunBody([&] { return Run(device, request); });
}

}  // namespace bimetal::kernels
