// Random products for the tests of units: codes, gathers and C of any format and layout.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/random.hpp"

namespace numemu::unit::test {

/// Small deterministic generator on top of the project's Philox.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) { source_.seed = seed; }
  std::uint32_t bits() { return source_.bits(next_++, 32); }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }

 private:
  RandomSource source_;
  std::uint64_t next_ = 0;
};

/// Which codes an operand draws.
enum class Fill {
  any,     ///< every code of the format; for float32 with NaN, infinity, subnormals and -0
  finite,  ///< moderate finite values (|x| <= 1 for float32)
};

/// One operand in its container.
struct OperandData {
  const Format* format = nullptr;
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint16_t> halves;
  std::vector<float> floats;
  Gather gather;

  Operand operand() const {
    const void* codes = !bytes.empty()    ? static_cast<const void*>(bytes.data())
                        : !halves.empty() ? static_cast<const void*>(halves.data())
                                          : static_cast<const void*>(floats.data());
    return {format, codes, &gather};
  }
};

inline float any_float(Dice& dice) {
  static const std::uint32_t kSpecial[] = {0x7fc00000, 0xffc12345, 0x7f800000, 0xff800000,
                                           0x80000000, 0,          0x00000001, 0x80700000,
                                           0x7f7fffff, 0x3f800000};
  const std::uint32_t bits = dice.bits();
  switch (dice.below(8)) {
    case 0:
      return std::bit_cast<float>(kSpecial[dice.below(10)]);
    case 1:
      return std::bit_cast<float>((bits & 0x80ffffffu) | 0x30000000u);
    case 2:
      return std::bit_cast<float>(bits & 0x807fffffu);
    default:
      return std::bit_cast<float>((bits & 0x83ffffffu) | 0x3c000000u);
  }
}

inline OperandData make_operand(const std::string& format, std::int64_t source_size, Gather gather,
                                Fill fill, Dice& dice) {
  OperandData data;
  data.format = &find_format(format);
  data.gather = std::move(gather);
  const auto size = static_cast<std::size_t>(source_size);
  const auto finite = [&](std::uint64_t code) {
    const std::uint64_t magnitude = code & ~data.format->sign_bit();
    return data.format->kind == Kind::integer || magnitude <= data.format->largest_code();
  };
  const auto draw = [&] {
    for (;;) {
      const std::uint64_t code = dice.bits() & data.format->code_mask();
      if (fill == Fill::any || finite(code)) return code;
    }
  };
  if (data.format->bits <= 8) {
    data.bytes.resize(size);
    for (auto& code : data.bytes) code = static_cast<std::uint8_t>(draw());
  } else if (data.format->bits <= 16) {
    data.halves.resize(size);
    for (auto& code : data.halves) code = static_cast<std::uint16_t>(draw());
  } else {
    data.floats.resize(size);
    for (auto& x : data.floats) {
      x = fill == Fill::any ? any_float(dice)
                            : static_cast<float>(static_cast<std::int32_t>(dice.bits())) * 0x1p-31f;
      const std::uint32_t kept = ~((1u << data.format->container_shift) - 1);
      x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & kept);
    }
  }
  return data;
}

/// A whole product with its result.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  OperandData a, b;
  std::vector<float> c;  ///< empty: none

  Gemm gemm(std::vector<float>& d) const {
    d.assign(static_cast<std::size_t>(m * n), std::bit_cast<float>(0xdeadbeefu));
    Gemm g;
    g.m = m;
    g.n = n;
    g.k = k;
    g.a = a.operand();
    g.b = b.operand();
    g.c = c.empty() ? nullptr : c.data();
    g.d = d.data();
    return g;
  }
};

struct MatrixLayout {
  bool a_transposed = false, b_transposed = false, with_c = false;
};

inline Problem make_matrices(const std::string& format_a, const std::string& format_b,
                             std::int64_t m, std::int64_t n, std::int64_t k, MatrixLayout layout,
                             Fill fill, std::uint64_t seed) {
  Dice dice(seed);
  Problem p{m, n, k, {}, {}, {}};
  p.a = make_operand(format_a, m * k, Gather::matrix(m, k, layout.a_transposed), fill, dice);
  p.b = make_operand(format_b, n * k, Gather::matrix(n, k, layout.b_transposed), fill, dice);
  if (layout.with_c) {
    p.c.resize(static_cast<std::size_t>(m * n));
    for (float& x : p.c)
      x = fill == Fill::any ? any_float(dice) : static_cast<float>(dice.below(64)) / 4;
  }
  return p;
}

/// A convolution as a product: `images` of height x width x channels, padded by `pad`, kernel x
/// kernel taps.
struct Convolution {
  std::int64_t images = 1, height = 8, width = 8, channels = 3, kernel = 3, pad = 1, dilation = 1,
               stride = 1;
};

inline Gather patches(const Convolution& s) {
  Gather g;
  g.padding.outer = s.images;
  g.padding.height = s.height;
  g.padding.width = s.width;
  g.padding.channels = s.channels;
  g.padding.top = g.padding.left = s.pad;
  g.padding.dilation = s.dilation;
  g.padding.padded_height = (s.height - 1) * s.dilation + 1 + 2 * s.pad;
  g.padding.padded_width = (s.width - 1) * s.dilation + 1 + 2 * s.pad;
  const std::int64_t h = g.padding.padded_height, w = g.padding.padded_width, c = s.channels;
  for (std::int64_t o = 0; o < s.images; ++o)
    for (std::int64_t y = 0; y + s.kernel <= h; y += s.stride)
      for (std::int64_t x = 0; x + s.kernel <= w; x += s.stride)
        g.row.push_back(static_cast<std::int32_t>(((o * h + y) * w + x) * c));
  for (std::int64_t y = 0; y < s.kernel; ++y)
    for (std::int64_t x = 0; x < s.kernel; ++x)
      for (std::int64_t i = 0; i < c; ++i)
        g.depth.push_back(static_cast<std::int32_t>((y * w + x) * c + i));
  return g;
}

inline Problem make_convolution(const std::string& format_a, const std::string& format_b,
                                const Convolution& shape, std::int64_t outputs, Fill fill,
                                std::uint64_t seed) {
  Dice dice(seed);
  Gather gather = patches(shape);
  Problem p;
  p.m = static_cast<std::int64_t>(gather.row.size());
  p.n = outputs;
  p.k = static_cast<std::int64_t>(gather.depth.size());
  const std::int64_t source = gather.padding.source_size();
  p.a = make_operand(format_a, source, std::move(gather), fill, dice);
  p.b = make_operand(format_b, p.n * p.k, Gather::matrix(p.n, p.k), fill, dice);
  return p;
}

/// The weight gradient of the same convolution: A the output gradients, B the patches, depth runs
/// over pixels.
inline Problem make_weight_gradient(const Convolution& shape, std::int64_t outputs, Fill fill,
                                    std::uint64_t seed) {
  Dice dice(seed);
  Gather gather = patches(shape);
  Problem p;
  p.m = outputs;
  p.n = static_cast<std::int64_t>(gather.depth.size());
  p.k = static_cast<std::int64_t>(gather.row.size());
  const std::int64_t source = gather.padding.source_size();
  std::swap(gather.row, gather.depth);
  p.a = make_operand("float32", p.m * p.k, Gather::matrix(p.m, p.k, true), fill, dice);
  p.b = make_operand("float32", source, std::move(gather), fill, dice);
  return p;
}

/// Number of elements whose bits differ.
inline std::int64_t differing(const std::vector<float>& x, const std::vector<float>& y) {
  if (x.size() != y.size()) return -1;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += std::memcmp(&x[i], &y[i], sizeof(float)) != 0;
  return count;
}

/// Bits in which the unit's fast answer and its reference differ.
inline std::int64_t mismatches(const Unit& unit, const Problem& problem) {
  std::vector<float> fast, reference;
  unit.multiply(problem.gemm(fast));
  unit.multiply_reference(problem.gemm(reference));
  return differing(fast, reference);
}

/// Every named format an operand of the unit can have, of at most `bits` bits.
inline std::vector<std::string> operand_formats(const Unit& unit, int bits) {
  std::vector<std::string> names;
  for (const Format* format : named_formats()) {
    if (format->bits <= bits && unit.accepts(*format)) names.push_back(format->name);
  }
  return names;
}

}  // namespace numemu::unit::test
