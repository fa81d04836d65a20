// The questionnaire of an instruction: every family, in the order in which records hold them.
#include "tests/oracle/cuda/probes/probe.hpp"

#include <algorithm>

#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::gpu {

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

Batch tiles_of(const Instruction& i, const std::vector<Probe>& probes) {
  Batch batch(i, static_cast<int>(probes.size()));
  const TileBytes bytes = tile_bytes(i);
  const auto copy = [](std::vector<std::uint8_t>& to, std::size_t at,
                       const std::vector<std::uint8_t>& from) {
    std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const auto store = [](std::uint8_t* to, Element e, const std::vector<std::uint64_t>& codes) {
    for (const std::uint64_t code : codes) {
      store_code(to, info(e).bytes, code);
      to += info(e).bytes;
    }
  };
  for (std::size_t p = 0; p < probes.size(); ++p) {
    store(batch.a.data() + p * bytes.a, i.a, probes[p].a);
    store(batch.b.data() + p * bytes.b, i.b, probes[p].b);
    store(batch.c.data() + p * bytes.c, i.c, {probes[p].c});
    copy(batch.metadata, p * bytes.metadata, probes[p].metadata);
    copy(batch.scale_a, p * bytes.scale_a, probes[p].scale_a);
    copy(batch.scale_b, p * bytes.scale_b, probes[p].scale_b);
  }
  return batch;
}

}  // namespace numemu::gpu
