#include "tests/emu/unit/problem.hpp"

#include <bit>
#include <cstring>

namespace numemu::unit::test {

float any_float(Dice& dice) {
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

OperandData make_operand(const std::string& format, std::int64_t source_size, Gather gather,
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

Problem make_matrices(const std::string& format_a, const std::string& format_b, std::int64_t m,
                      std::int64_t n, std::int64_t k, MatrixLayout layout, Fill fill,
                      std::uint64_t seed) {
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

Gather patches(const Convolution& s) {
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

Problem make_convolution(const std::string& format_a, const std::string& format_b,
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

Problem make_weight_gradient(const Convolution& shape, std::int64_t outputs, Fill fill,
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

std::int64_t differing(const std::vector<float>& x, const std::vector<float>& y) {
  if (x.size() != y.size()) return -1;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += std::memcmp(&x[i], &y[i], sizeof(float)) != 0;
  return count;
}

std::int64_t mismatches(const Unit& unit, const Problem& problem) {
  std::vector<float> fast, reference;
  unit.multiply(problem.gemm(fast));
  unit.multiply_reference(problem.gemm(reference));
  return differing(fast, reference);
}

std::vector<std::string> operand_formats(const Unit& unit, int bits) {
  std::vector<std::string> names;
  for (const Format* format : named_formats()) {
    if (format->bits <= bits && unit.accepts(*format)) names.push_back(format->name);
  }
  return names;
}

}  // namespace numemu::unit::test
