// Builds the timed products and checks units against their references.
#include "bench/gemm_cases.hpp"

#include <cstring>

#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::bench {
namespace {

/// Every code that is a finite number for 8-bit formats, values in [-1, 1) for float32.
void draw(const Format& format, std::int64_t size, std::uint64_t seed,
          std::vector<std::uint8_t>& codes, std::vector<float>& floats) {
  RandomSource random;
  random.seed = seed;
  if (format.bits > 8) {
    for (std::int64_t i = 0; i < size; ++i)
      floats.push_back(static_cast<float>(static_cast<std::int32_t>(random.bits(i, 32))) *
                       0x1p-31f);
    return;
  }
  for (std::int64_t i = 0; i < size; ++i) {
    auto code = random.bits(i, 32) & format.code_mask();
    const bool finite =
        format.kind == Kind::integer || (code & ~format.sign_bit()) <= format.largest_code();
    codes.push_back(static_cast<std::uint8_t>(finite ? code : 0));
  }
}

void draw_both(Case& c, std::int64_t a_size, std::int64_t b_size) {
  draw(*c.format_a, a_size, 1, c.a_codes, c.a_floats);
  draw(*c.format_b, b_size, 2, c.b_codes, c.b_floats);
  c.d.resize(static_cast<std::size_t>(c.m * c.n));
}

}  // namespace

unit::Gemm Case::gemm() {
  const auto codes = [](const std::vector<std::uint8_t>& bytes, const std::vector<float>& floats) {
    return bytes.empty() ? static_cast<const void*>(floats.data())
                         : static_cast<const void*>(bytes.data());
  };
  unit::Gemm g{
      m, n, k, {format_a, codes(a_codes, a_floats), &a}, {format_b, codes(b_codes, b_floats), &b}};
  g.d = d.data();
  return g;
}

Case matrices(const std::string& unit, const std::string& format, std::int64_t m, std::int64_t n,
              std::int64_t k) {
  Case c;
  c.name = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  c.unit = unit;
  c.format_a = c.format_b = &find_format(format);
  c.m = m, c.n = n, c.k = k;
  c.a = unit::Gather::matrix(m, k);
  c.b = unit::Gather::matrix(n, k, true);
  draw_both(c, m * k, n * k);
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
  c.unit = unit;
  c.format_a = c.format_b = &find_format(format);
  if (gradient) {
    c.m = outputs, c.n = taps, c.k = pixels;
    c.a = unit::Gather::matrix(outputs, pixels, true);
    std::swap(patches.row, patches.depth);
    c.b = std::move(patches);
    draw_both(c, outputs * pixels, source);
  } else {
    c.m = pixels, c.n = outputs, c.k = taps;
    c.a = std::move(patches);
    c.b = unit::Gather::matrix(outputs, taps);
    draw_both(c, source, outputs * taps);
  }
  c.name += " " + std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k);
  return c;
}

void require_equal(const std::string& unit, const std::string& format) {
  for (Case& c : std::vector<Case>{matrices(unit, format, 45, 70, 300),
                                   convolution(unit, format, 8, 2, 6, false)}) {
    c.run();
    std::vector<float> reference(c.d.size());
    unit::Gemm g = c.gemm();
    g.d = reference.data();
    unit::find_unit(unit).multiply_reference(g);
    if (std::memcmp(c.d.data(), reference.data(), reference.size() * sizeof(float)) != 0)
      throw Error(unit + " on " + format + ", " + c.name + ": fast and reference differ");
  }
}

}  // namespace numemu::bench
