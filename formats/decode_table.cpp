// The float32 values of formats of at most 8 bits, computed once per format.
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"

namespace numemu {
namespace {

using Table = std::array<float, 256>;

std::unique_ptr<const Table> make_table(const Format& f) {
  if (f.bits > 8)
    throw Error("format '" + f.name + "' has more than 8 bits, expected at most 8 for a table");
  auto table = std::make_unique<Table>();
  for (std::uint64_t code = 0; code < table->size(); ++code) {
    const Value v = decode(f, code & f.code_mask());
    float& entry = (*table)[code];
    if (v.kind == Class::nan) {
      entry = std::bit_cast<float>(std::uint32_t{0x7fc00000});
      continue;
    }
    // Through the bits of float32's own codec, so that no host flag or conversion takes part.
    static const Format& float32 = find_format("float32");
    const Encoded result = encode(float32, v, {}, Overflow::propagate);
    if ((result.flags & kInexact) != 0)
      throw Error("format '" + f.name + "' has values that are not exact in float32");
    entry = std::bit_cast<float>(static_cast<std::uint32_t>(result.code));
  }
  return table;
}

}  // namespace

const float* decode_table(const Format& f) {
  const auto key = std::make_tuple(f.kind, f.is_signed, f.bits, f.exponent_bits, f.mantissa_bits,
                                   f.bias, f.specials, f.field_zero, f.codebook);
  static std::mutex mutex;
  static std::map<std::remove_const_t<decltype(key)>, std::unique_ptr<const Table>> tables;
  const std::lock_guard lock(mutex);
  auto& table = tables[key];
  if (!table) table = make_table(f);
  return table->data();
}

}  // namespace numemu
