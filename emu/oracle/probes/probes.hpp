// The families of probes: what each adds to the sheet of some ports, and what they share.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/oracle/dots/draft.hpp"

namespace numemu::oracle {

/// Every probe that the ports can express.
void add_probes(Sheet&);

/// A row of questions.def: what published descriptions of matrix units disagree about.
struct OpenQuestion {
  const char *id, *text, *rivals, *source;
};
const std::vector<OpenQuestion>& open_questions();

/// Dots chosen by hand, each with an id of its own, whose results decide an open question: at most
/// some two hundred. What a GPU is asked.
std::vector<AskedDot> probes(const Ports&);

/// Operands, C and result are floating.
bool floats(const Ports&);

namespace probing {

void ask_zero_exponent(Sheet&);
void ask_exponent_floor(Sheet&);
void ask_step_width(Sheet&);
void ask_kept_bits(Sheet&);
void ask_product_exponent(Sheet&);
void ask_written_bits(Sheet&);
void ask_c_entry(Sheet&);
void ask_alignment_rounding(Sheet&);
void ask_zero_sign(Sheet&);
void ask_overflow(Sheet&);
void ask_mixed_accumulator(Sheet&);
void ask_subnormals(Sheet&);
void ask_nan_payload(Sheet&);
void ask_infinities(Sheet&);
void ask_fp8_lowering(Sheet&);
void ask_sparse_order(Sheet&);
void ask_kept_zeros(Sheet&);
void ask_double_chain(Sheet&);
void ask_scales(Sheet&);
void ask_int_saturation(Sheet&);

/// A probe of a question of questions.def. The only block of K has scale 1 until it is given
/// another.
Draft probe(const Sheet&, std::string id, std::string question);

// Numbers.

inline Value zero() { return {}; }
inline Value power(int exponent) { return number(1, exponent); }
using Code = std::optional<std::uint64_t>;
inline Code code_of(const Format* f, const Value& v) { return exact_code(f, 0, v); }
inline int least_exponent(const Format* f) { return normal_reach(*f).least; }
inline int greatest_exponent(const Format* f) { return normal_reach(*f).greatest; }
inline int subnormal_exponent(const Format* f) { return last_exponent(*f); }
inline Code scale_code(const Format* f, int exponent) { return code_of(f, power(exponent)); }
Value largest(const Format*);
/// Nothing where the format has no infinity.
Code infinity_code(const Format*, bool negative = false);
/// Quiet: the top mantissa bit is set; `payload` fills the bits below it. A format with one NaN has
/// it quiet, without payload. Nothing where the code would be an infinity.
Code nan_code(const Format*, bool negative, bool quiet, std::uint64_t payload);

// Types.

inline bool is_half(const Format* f) { return f->exponent_bits == 5 && f->mantissa_bits == 10; }
inline bool is_single(const Format* f) { return f->exponent_bits == 8 && f->mantissa_bits == 23; }
inline bool is_double(const Format* f) { return f->mantissa_bits == 52; }
/// A scale without mantissa.
inline bool is_power(const Format* f) { return f != nullptr && f->mantissa_bits == 0; }
/// Floating-point steps: float64 is a chain of its own.
inline bool sums_in_steps(const Ports& ports) { return !is_double(ports.a); }

// Places.

/// The n-th position of a set that shares a step in every known description of the unit: 0, 1, 4, 5
/// and so on for eight bits and fewer (a lowered unit splits by k mod 4), one in each group of 16
/// for FP4 with several scales, else 0, 1, 2.
int together(const Ports&, int n);

/// A choice of kept places in a group, and the four bits by which NVIDIA's metadata name it.
struct Kept {
  std::uint8_t word;
  std::vector<std::uint8_t> places;
};
/// The choices of 2:4, of 1:2, and of 4:8 in pairs; empty for others.
std::vector<Kept> choices(const Ports&);
inline int groups(const Ports& ports) {
  return ports.sparsity.dense() ? 0 : ports.k / ports.sparsity.group;
}

// Sums.

/// An exponent for large products: far above the small ones, and the result can hold it.
int top_exponent(const Ports&);

/// Widths that descriptions give to units of these types: where rivals differ by one bit.
std::vector<int> candidate_widths(const Ports&);

/// A product that is lost beside 2^top at every candidate width; nothing where the types have none.
std::optional<Value> small_beside(const Ports&);

/// The least normal C and two bits below its leading one, the last and one that is lost sooner: an
/// exponent of alignment that is a little too high shows where nothing but zeros stands beside it.
Value tiny_c(const Ports&);

/// Adds +2^top and -2^top, which cancel and leave what lies beside them.
Draft& cancelling_pair(Draft&);

}  // namespace probing
}  // namespace numemu::oracle
