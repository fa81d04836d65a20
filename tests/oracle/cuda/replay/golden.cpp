// The published hardware outputs as records of instructions.
#include "tests/oracle/cuda/replay/golden.hpp"

#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/index.hpp"
#include "tests/oracle/cuda/replay/products.hpp"

namespace numemu::oracle::recording::replay {
namespace {

std::string element_named(const std::string& name) {
  if (name == "fp16") return "f16";
  if (name == "fp32") return "f32";
  if (name == "E4M3") return "e4m3";
  return name == "E5M2" ? "e5m2" : name;
}

/// Hopper's FP8 to float32 was taken with wgmma and C = 0, all else with mma.sync.
bool by_wgmma(const std::string& chip, const std::string& in, const std::string& out) {
  return (chip == "H100" || chip == "H200") && out == "f32" && (in == "e4m3" || in == "e5m2");
}

const Instruction& instruction_of(const IndexRow& row, bool wgmma) {
  const std::string in = element_named(row.text("in")), out = element_named(row.text("out"));
  const std::string shape = wgmma                                 ? "m64n8k"
                            : row.text("K") == "4" && in == "f16" ? "m8n8k"
                                                                  : "m16n8k";
  const std::string name = shape + row.text("K") + "." + out + "." + in + "." + in;
  const int found = find_instruction(wgmma ? "wgmma" : "mma", wgmma ? name : name + "." + out);
  if (found < 0) throw BadInput(row.where + ": no instruction " + name);
  return instructions()[static_cast<std::size_t>(found)];
}

/// float32 to float16, nearest even.
std::uint64_t narrowed(std::uint64_t code) {
  const Number n = decode(info(Element::f32), code);
  if (n.kind == Class::infinite) return infinity_code(Element::f16, n.negative);
  if (n.kind == Class::nan) return canonical_nan(Element::f16);
  const Writing to{Element::f16, Rounding::nearest_even, 10, false, true, false};
  return encode(to, n.negative, n.significand, n.exponent - info(Element::f32).mantissa_bits);
}

std::uint64_t widened(std::uint64_t code) {
  const Number n = decode(info(Element::f16), code);
  if (n.kind == Class::infinite) return infinity_code(Element::f32, n.negative);
  if (n.kind == Class::nan) return canonical_nan(Element::f32);
  const Writing to{Element::f32, Rounding::nearest_even, 23, false, true, false};
  return encode(to, n.negative, n.significand, n.exponent - info(Element::f16).mantissa_bits);
}

void append(std::vector<std::uint8_t>& bytes, Element e, std::uint64_t code) {
  for (int b = 0; b < info(e).bytes; ++b)
    bytes.push_back(static_cast<std::uint8_t>(code >> (8 * b)));
}

RecordFile read_row(const std::string& folder, const IndexRow& row) {
  RecordFile r;
  r.file = row.text("file");
  r.unit = row.text("gpu");
  r.source = "published outputs";
  const std::string in = element_named(row.text("in")), out = element_named(row.text("out"));
  const bool wgmma = by_wgmma(chip_of(r.unit), in, out);
  r.instruction = &instruction_of(row, wgmma);
  r.count = row.number("count");
  const Instruction& i = *r.instruction;
  const std::vector<std::uint8_t> raw = read_bytes(path_below(folder, row, r.file));
  const auto operands = static_cast<std::size_t>(2 * i.k * info(i.a).bytes);
  if (raw.size() != r.count * (operands + 8))
    throw BadInput(r.file + ": expected " + std::to_string(r.count) + " records of " +
                   std::to_string(operands + 8) + " bytes, got " + std::to_string(raw.size()) +
                   " bytes");
  for (std::size_t n = 0; n < r.count; ++n) {
    const std::uint8_t* at = raw.data() + n * (operands + 8);
    r.bytes.insert(r.bytes.end(), at, at + operands);
    const std::uint64_t c = wgmma ? 0 : code_at(at + operands, Element::f32, 0);
    const std::uint64_t d = code_at(at + operands + 4, Element::f32, 0);
    const bool narrow = i.d == Element::f16;
    append(r.bytes, i.c, narrow ? narrowed(c) : c);
    append(r.bytes, i.d, narrow ? narrowed(d) : d);
    if (narrow && widened(narrowed(d)) != d)
      throw BadInput(r.file + " record " + std::to_string(n) + ": d is not a widened float16");
  }
  check(r);
  return r;
}

}  // namespace

Records read_hardware_records(const std::string& folder) {
  Records records;
  for (const IndexRow& row : read_index(folder + "/index_hw_leeds.tsv"))
    records.files.push_back(read_row(folder, row));
  return records;
}

}  // namespace numemu::oracle::recording::replay
