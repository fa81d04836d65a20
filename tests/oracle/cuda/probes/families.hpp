// The families of probes, a file each: what they add to the sheet of an instruction.
#pragma once
#include "tests/oracle/cuda/probes/draft.hpp"

namespace numemu::oracle::recording::probing {

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
void ask_tf32_low_bits(Sheet&);
void ask_double_chain(Sheet&);
void ask_scales(Sheet&);
void ask_int_saturation(Sheet&);

/// What the families of sums share: floating-point steps, float64 (a chain of its own) apart.
inline bool sums_in_steps(const Instruction& i) { return !is_integer(i.a) && i.a != Element::f64; }

/// Widths that descriptions give to units of these types: where rivals differ by one bit.
std::vector<int> candidate_widths(const Instruction&);

/// A product that is lost beside 2^top at every candidate width; nothing where the types have none.
std::optional<Exact> small_beside(const Instruction&);

/// The least normal C and two bits below its leading one, the last and one that is lost sooner: an
/// exponent of alignment that is a little too high shows where nothing but zeros stands beside it.
Exact tiny_c(const Instruction&);

/// Adds +2^top and -2^top, which cancel and leave what lies beside them.
Draft& cancelling_pair(Draft&);

}  // namespace numemu::oracle::recording::probing
