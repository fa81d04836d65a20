// Builds the timed products and checks units against their references.
#include "bench/gemm_cases.hpp"

#include <bit>
#include <cstring>
#include <map>
#include <memory>

#include "emu/unit/description/json.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::bench {
namespace {

/// The code of element i.
std::uint64_t draw(const Format& f, const RandomSource& random, std::int64_t i, Data data) {
  const auto word = [&](int draw) {
    RandomSource one = random;
    one.draw = static_cast<std::uint16_t>(draw);
    return one.bits(static_cast<std::uint64_t>(i), 32);
  };
  if (data == Data::sparse && word(8) % 8 != 0) return 0;
  if (data == Data::moderate || f.bits > 16) {
    double sum = -2;
    for (int d = 0; d < 4; ++d) sum += word(d) * 0x1p-32;
    const double scale = f.kind == Kind::integer ? static_cast<double>(f.largest_code()) / 2 : 1;
    return encode(f, value_of(sum * scale), Rounding{}, Overflow::saturate).code;
  }
  const std::uint64_t code = word(0) & f.code_mask();
  const Class kind = decode(f, code).kind;
  return kind == Class::finite || kind == Class::zero ? code : 0;
}

void fill(const Format& f, std::int64_t size, std::uint64_t seed, Data data,
          std::vector<std::uint8_t>& codes, std::vector<float>& floats) {
  RandomSource random;
  random.seed = seed;
  const auto bytes = static_cast<std::size_t>(container_bytes(f));
  codes.assign(static_cast<std::size_t>(size) * bytes, 0);
  floats.resize(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    const std::uint64_t code = draw(f, random, i, data);
    const std::uint64_t stored = code << f.container_shift;
    std::memcpy(&codes[static_cast<std::size_t>(i) * bytes], &stored, bytes);
    floats[static_cast<std::size_t>(i)] = static_cast<float>(to_double(decode(f, code)));
  }
}

/// Scales within a factor of eight of one.
std::vector<std::uint8_t> scales(const unit::UnitDescription& u, std::int64_t count,
                                 std::uint64_t seed) {
  RandomSource random;
  random.seed = seed;
  const Format& f = *u.scaling.format;
  const std::uint64_t one = encode(f, value_of(1.0f), Rounding{}, Overflow::saturate).code;
  std::vector<std::uint8_t> codes;
  for (std::int64_t i = 0; i < count; ++i)
    codes.push_back(
        static_cast<std::uint8_t>(one - 3 + random.bits(static_cast<std::uint64_t>(i), 32) % 7));
  return codes;
}

/// A unit of the catalogue, or the one that a JSON text describes; it lives as long as the program.
const unit::Unit& named_or_described(const std::string& text) {
  static std::map<std::string, std::unique_ptr<unit::Unit>> described;
  if (!text.starts_with("{")) return unit::find_unit(text);
  std::unique_ptr<unit::Unit>& made = described[text];
  if (made == nullptr) made = unit::make_unit(unit::parse_description(text, "benchmark"));
  return *made;
}

void draw_both(Case& c, std::int64_t a_size, std::int64_t b_size, Data data) {
  fill(*c.format_a, a_size, 1, data, c.a_codes, c.a_floats);
  fill(*c.format_b, b_size, 2, data, c.b_codes, c.b_floats);
  const unit::Unit& unit = *c.machine;
  const unit::UnitDescription* u = unit.description();
  std::size_t bytes = 4;
  if (unit.d_format() != nullptr)
    bytes = static_cast<std::size_t>(container_bytes(*unit.d_format()));
  c.d.resize(static_cast<std::size_t>(c.m * c.n) * bytes);
  if (u == nullptr || u->scaling.block == 0) return;
  const std::int64_t blocks = (c.k + u->scaling.block - 1) / u->scaling.block;
  c.a_scales = scales(*u, c.m * blocks, 3);
  c.b_scales = scales(*u, c.n * blocks, 4);
}

/// The unit's own operand formats, or `format`.
void choose_formats(Case& c, const std::string& unit, const std::string& format) {
  c.machine = &named_or_described(unit);
  c.unit = c.machine->row().name;
  const unit::UnitDescription* u = c.machine->description();
  c.format_a = u != nullptr && u->a != nullptr ? u->a : &find_format(format);
  c.format_b = u != nullptr && u->b != nullptr ? u->b : &find_format(format);
}

}  // namespace

std::string to_string(Data data) {
  switch (data) {
    case Data::moderate:
      return "moderate";
    case Data::codes:
      return "all codes";
    case Data::sparse:
      break;
  }
  return "sparse, wide";
}

unit::Gemm Case::gemm() {
  unit::Gemm g{m, n, k, {format_a, a_codes.data(), &a}, {format_b, b_codes.data(), &b}};
  g.d = d.data();
  if (!a_scales.empty()) {
    g.scale_a = a_scales.data();
    g.scale_b = b_scales.data();
  }
  return g;
}

Case matrices(const std::string& unit, const std::string& format, std::int64_t m, std::int64_t n,
              std::int64_t k, Data data) {
  Case c;
  c.name = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  choose_formats(c, unit, format);
  c.m = m, c.n = n, c.k = k;
  c.a = unit::Gather::matrix(m, k);
  c.b = unit::Gather::matrix(n, k, true);
  draw_both(c, m * k, n * k, data);
  return c;
}

Case convolution(const std::string& unit, const std::string& format, std::int64_t size,
                 std::int64_t channels, std::int64_t outputs, bool gradient) {
  constexpr std::int64_t kImages = 128, kKernel = 5;
  const std::int64_t out = size - kKernel + 1;
  unit::Gather patches;
  for (std::int64_t o = 0; o < kImages; ++o)
    for (std::int64_t y = 0; y < out; ++y)
      for (std::int64_t x = 0; x < out; ++x)
        patches.row.push_back(static_cast<std::int32_t>(((o * size + y) * size + x) * channels));
  for (std::int64_t y = 0; y < kKernel; ++y)
    for (std::int64_t x = 0; x < kKernel; ++x)
      for (std::int64_t i = 0; i < channels; ++i)
        patches.depth.push_back(static_cast<std::int32_t>((y * size + x) * channels + i));
  const auto pixels = static_cast<std::int64_t>(patches.row.size());
  const auto taps = static_cast<std::int64_t>(patches.depth.size());
  const std::int64_t source = kImages * size * size * channels;

  Case c;
  c.name = gradient ? "wgrad" : "conv";
  choose_formats(c, unit, format);
  if (gradient) {
    c.m = outputs, c.n = taps, c.k = pixels;
    c.a = unit::Gather::matrix(outputs, pixels, true);
    std::swap(patches.row, patches.depth);
    c.b = std::move(patches);
    draw_both(c, outputs * pixels, source, Data::moderate);
  } else {
    c.m = pixels, c.n = outputs, c.k = taps;
    c.a = std::move(patches);
    c.b = unit::Gather::matrix(outputs, taps);
    draw_both(c, source, outputs * taps, Data::moderate);
  }
  c.name += " " + std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k);
  return c;
}

void require_equal(const std::string& unit, const std::string& format, Data data) {
  std::vector<Case> cases{matrices(unit, format, 45, 70, 300, data)};
  const unit::Unit& tested = named_or_described(unit);
  if (tested.description() == nullptr || tested.description()->scaling.block == 0)
    cases.push_back(convolution(unit, format, 8, 2, 6, false));
  for (Case& c : cases) {
    c.run();
    std::vector<std::uint8_t> reference(c.d.size());
    unit::Gemm g = c.gemm();
    g.d = reference.data();
    tested.multiply_reference(g);
    if (c.d != reference)
      throw Error(unit + " on " + format + ", " + c.name + ": fast and reference differ");
  }
}

}  // namespace numemu::bench
