// The probes of some ports, family by family in the order in which recordings hold them.
#include "emu/oracle/probes/probes.hpp"

#include <algorithm>

#include "formats/codec.hpp"

namespace numemu::oracle {

bool floats(const Ports& ports) {
  return ports.d != nullptr && ports.c != nullptr && ports.a->kind == Kind::floating &&
         ports.b->kind == Kind::floating;
}

void add_probes(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (floats(ports)) {
    for (const auto ask :
         {probing::ask_zero_exponent, probing::ask_exponent_floor, probing::ask_step_width,
          probing::ask_kept_bits, probing::ask_product_exponent, probing::ask_written_bits,
          probing::ask_c_entry, probing::ask_alignment_rounding, probing::ask_zero_sign,
          probing::ask_overflow, probing::ask_mixed_accumulator, probing::ask_subnormals,
          probing::ask_nan_payload, probing::ask_infinities, probing::ask_fp8_lowering,
          probing::ask_sparse_order, probing::ask_kept_zeros, probing::ask_double_chain,
          probing::ask_scales})
      ask(sheet);
  } else if (ports.d == nullptr && ports.a->kind == Kind::integer &&
             ports.b->kind == Kind::integer) {
    probing::ask_sparse_order(sheet);
    probing::ask_int_saturation(sheet);
  }
}

const std::vector<OpenQuestion>& open_questions() {
  static const std::vector<OpenQuestion> kTable = {
#define NUMEMU_OPEN_QUESTION(id, text, rivals, source) {id, text, rivals, source},
#include "emu/oracle/probes/questions.def"
#undef NUMEMU_OPEN_QUESTION
  };
  return kTable;
}

std::vector<AskedDot> probes(const Ports& ports) {
  Sheet sheet(ports);
  add_probes(sheet);
  return sheet.take();
}

namespace probing {

Draft probe(const Sheet& sheet, std::string id, std::string question) {
  Draft draft = sheet.draft(std::move(question), std::move(id));
  if (sheet.ports().scales() == 1) draft.common_scale(0);
  return draft;
}

Value largest(const Format* f) { return decode(*f, f->largest_code()); }

Code infinity_code(const Format* f, bool negative) {
  const bool has = f->has_infinity() && f->specials != Specials::top && (!negative || f->is_signed);
  return has ? Code(f->infinity_code(negative)) : std::nullopt;
}

Code nan_code(const Format* f, bool negative, bool quiet, std::uint64_t payload) {
  if (!f->has_nan() || (negative && !f->is_signed)) return {};
  if (f->specials != Specials::ieee)
    return quiet && payload == 0 ? Code(f->nan_code(negative)) : std::nullopt;
  const std::uint64_t quiet_bit = std::uint64_t{1} << (f->mantissa_bits - 1);
  if (payload >= quiet_bit || (!quiet && payload == 0)) return {};
  return f->infinity_code(negative) | (quiet ? quiet_bit : 0) | payload;
}

int together(const Ports& ports, int n) {
  if (ports.scales() > 1) return 16 * n;
  return ports.a->kind == Kind::floating && ports.a->bits <= 8 ? 4 * (n / 2) + n % 2 : n;
}

std::vector<Kept> choices(const Ports& ports) {
  const unit::Sparsity& s = ports.sparsity;
  if (s == unit::Sparsity{1, 2}) return {{0b0100, {0}}, {0b1110, {1}}};
  const int size = s.kept / 2;  // of what a word selects: single elements or pairs
  std::vector<Kept> all;
  if (s != unit::Sparsity{2, 4} && s != unit::Sparsity{4, 8}) return all;
  for (const std::uint8_t word : {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110}) {
    Kept kept{word, {}};
    for (const int field : {word & 3, word >> 2})
      for (int n = 0; n < size; ++n)
        kept.places.push_back(static_cast<std::uint8_t>(field * size + n));
    all.push_back(std::move(kept));
  }
  return all;
}

int top_exponent(const Ports& ports) {
  if (!floats(ports)) return 0;
  const int limit = is_half(ports.d) ? 15 : 16;
  if (ports.scales() > 1) return limit;
  return std::min(limit, greatest_exponent(ports.a) + greatest_exponent(ports.b));
}

}  // namespace probing
}  // namespace numemu::oracle
