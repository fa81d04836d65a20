// Draws the codes of random products.
#include "tests/oracle/mma/random_batch.hpp"

#include <algorithm>
#include <cstring>

namespace numemu::oracle::mma {
namespace {

int top_field(const Format& f) { return (1 << f.exponent_bits) - 1; }

/// Exponent field of the largest finite numbers.
int last_field(const Format& f) {
  return static_cast<int>(f.largest_code() >> f.mantissa_bits &
                          static_cast<unsigned>(top_field(f)));
}

std::uint64_t random_bits(const Format& f, Words& w) {
  return (static_cast<std::uint64_t>(w.next()) << 32 | w.next()) & f.code_mask();
}

/// Fields within `spread` of 1, but at least one below the ends.
std::uint64_t around_one(const Format& f, Words& w, int spread) {
  const int lowest = std::max(f.bias - spread, 1),
            highest = std::min(f.bias + spread, last_field(f) - 1);
  const auto field = static_cast<std::uint64_t>(
      lowest +
      static_cast<int>(w.below(static_cast<std::uint32_t>(std::max(highest - lowest, 0) + 1))));
  const std::uint64_t fields = (std::uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  return (random_bits(f, w) & ~(fields & ~((std::uint64_t{1} << f.mantissa_bits) - 1))) |
         field << f.mantissa_bits;
}

std::uint64_t draw(const Format* f, Codes codes, Words& w) {
  if (f == nullptr) return codes == Codes::all ? w.next() : w.below(1000);
  if (f->kind != Kind::floating) return random_bits(*f, w);
  if (codes == Codes::middle) return around_one(*f, w, 2);
  // Wide formats would hardly ever meet in one alignment.
  return f->exponent_bits <= 5 || w.below(32) == 0 ? random_bits(*f, w) : around_one(*f, w, 12);
}

std::string array(const Format* f, std::int64_t size, Codes codes, Words& w) {
  std::string bytes(static_cast<std::size_t>(size * width_of(f)), 0);
  for (std::int64_t i = 0; i < size; ++i) set_code(bytes, i, f, draw(f, codes, w));
  return bytes;
}

}  // namespace

std::int64_t width_of(const Format* f) {
  if (f == nullptr) return 4;
  const int bits = f->bits + f->container_shift;
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

std::uint64_t get_code(const std::string& bytes, std::int64_t index, const Format* f) {
  std::uint64_t code = 0;
  std::memcpy(&code, bytes.data() + index * width_of(f), static_cast<std::size_t>(width_of(f)));
  return f == nullptr ? code : code >> f->container_shift;
}

void set_code(std::string& bytes, std::int64_t index, const Format* f, std::uint64_t code) {
  if (f != nullptr) code <<= f->container_shift;
  std::memcpy(bytes.data() + index * width_of(f), &code, static_cast<std::size_t>(width_of(f)));
}

bool is_normal(const Format& f, std::uint64_t code) {
  const std::uint64_t magnitude = code & ~f.sign_bit();
  return magnitude <= f.largest_code() && magnitude >> f.mantissa_bits != 0;
}

std::uint64_t scaled_code(const Format& f, std::uint64_t code, int power) {
  const std::uint64_t one_binade = std::uint64_t{1} << f.mantissa_bits;
  return power >= 0 ? code + static_cast<std::uint64_t>(power) * one_binade
                    : code - static_cast<std::uint64_t>(-power) * one_binade;
}

Batch random_batch(const unit::Unit& unit, std::int64_t m, std::int64_t n, std::int64_t k,
                   Codes codes, Words& w, const Format* any) {
  const unit::UnitDescription& u = *unit.description();
  if (any == nullptr) any = &find_format("float16");
  Batch batch;
  batch.unit = unit.row().name;
  batch.count = 1;
  batch.m = m;
  batch.n = n;
  batch.k = k;
  batch.a_format = u.a == nullptr ? any : u.a;
  batch.b_format = u.b == nullptr ? any : u.b;
  batch.result = unit.d_format();
  batch.a = array(batch.a_format, m * k, codes, w);
  batch.b = array(batch.b_format, n * k, codes, w);
  batch.c = array(unit.c_format(), m * n, codes, w);
  batch.d.assign(static_cast<std::size_t>(m * n * width_of(unit.d_format())), 0);
  if (u.scaling.format != nullptr) {
    const std::int64_t blocks = (k + u.scaling.block - 1) / u.scaling.block;
    batch.scale_a = array(u.scaling.format, m * blocks, codes, w);
    batch.scale_b = array(u.scaling.format, n * blocks, codes, w);
  }
  return batch;
}

}  // namespace numemu::oracle::mma
