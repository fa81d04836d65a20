// A rectangle of outputs of the float or the half form: operands, constants, where C and D are.
#pragma once
#include <cstdint>
#include <optional>

#include "emu/unit/chain/chain.hpp"

namespace numemu::unit {

/// One operand and the exponents its non-zero values have: lowest <= e <= lowest +
/// kFloatFormSpread, where e is at least that of the format's smallest normal number.
struct FloatFormSide {
  ChainSide<float> values;
  int smallest_normal = 0;
  int lowest = 0;
};

/// Exponents are added as bytes e - lowest + 64, zeros as 0: a product with a zero is then below
/// 127, every other one is at least 128 and at most 128 + 2 kFloatFormSpread < 256.
constexpr int kFloatFormSpread = 62;

/// The half form's own numbers: values enter as float16 times these powers of two.
struct HalfFormPowers {
  int rows = 0, lanes = 0;
};

/// Outputs (i, j), i in [row_begin, row_end), j in [lane_begin, lane_end): the lanes fill vectors,
/// the rows are broadcast. Output (i, j) is d[i * row_stride + j * lane_stride].
struct FloatFormTile {
  FloatFormSide rows, lanes;
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0;
  std::int64_t k = 0, steps = 0;
  int group = 0;            ///< products of one step
  int fraction_bits = 0;    ///< F
  int kept_bits = 23;       ///< of a float32 register
  bool half = false;        ///< register, C and D are float16, else float32
  const void* c = nullptr;  ///< or null for +0; NaN and infinity are read as +0
  void* d = nullptr;
  std::int64_t row_stride = 0, lane_stride = 0;
  std::optional<HalfFormPowers> half_form;  ///< none: the float form
};

/// One tile on the calling thread. The best target of this CPU is chosen at run time.
void run_float_form_tile(const FloatFormTile&);
/// Whether that target can: it needs fused multiply-add, and for float16 registers x86.
bool float_form_available(bool half);
/// Lanes computed together.
std::int64_t float_form_width();

}  // namespace numemu::unit
