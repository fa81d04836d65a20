// The questionnaire of an instruction: every family, in the order in which records hold them.
#include "tests/oracle/cuda/probes/probes.hpp"

#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording {

std::vector<Probe> probes(const Instruction& instruction) {
  probing::Sheet sheet(instruction);
  for (const auto ask : {probing::ask_zero_exponent,     probing::ask_exponent_floor,
                         probing::ask_step_width,        probing::ask_kept_bits,
                         probing::ask_product_exponent,  probing::ask_written_bits,
                         probing::ask_c_entry,           probing::ask_alignment_rounding,
                         probing::ask_zero_sign,         probing::ask_overflow,
                         probing::ask_mixed_accumulator, probing::ask_subnormals,
                         probing::ask_nan_payload,       probing::ask_infinities,
                         probing::ask_fp8_lowering,      probing::ask_sparse_order,
                         probing::ask_kept_zeros,        probing::ask_tf32_low_bits,
                         probing::ask_double_chain,      probing::ask_scales,
                         probing::ask_int_saturation})
    ask(sheet);
  return sheet.take();
}

}  // namespace numemu::oracle::recording
