// Fills tiles from a seed: codes are drawn field by field, never through arithmetic.
#include "tests/oracle/mma/live_data.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace numemu::oracle::mma {
namespace {

using Draw = std::function<std::uint64_t()>;

std::string array(std::int64_t size, int bytes, const Draw& draw) {
  std::string out(static_cast<std::size_t>(size * bytes), 0);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::uint64_t code = draw();
    std::memcpy(&out[static_cast<std::size_t>(i * bytes)], &code, static_cast<std::size_t>(bytes));
  }
  return out;
}

/// Codes of an IEEE-like format by their fields.
struct Fields {
  explicit Fields(const Format& format)
      : e(format.exponent_bits), m(format.mantissa_bits), bias(format.bias), top((1 << e) - 1) {}

  std::uint64_t code(Words& w, int field) const {
    const auto clamped = static_cast<std::uint64_t>(std::clamp(field, 0, top - 1));
    return sign(w) | clamped << m | (w.next() & fraction());
  }
  /// An exponent between lowest and highest.
  std::uint64_t between(Words& w, int lowest, int highest) const {
    const int within = static_cast<int>(w.below(static_cast<std::uint32_t>(highest - lowest + 1)));
    return code(w, bias + lowest + within);
  }
  std::uint64_t finite(Words& w) const {
    return code(w, static_cast<int>(w.below(static_cast<std::uint32_t>(top))));
  }
  std::uint64_t zero(Words& w) const { return sign(w); }
  /// Infinity, a quiet or signalling NaN, a zero, or the largest finite number.
  std::uint64_t special(Words& w) const {
    const std::uint64_t infinity = static_cast<std::uint64_t>(top) << m;
    switch (w.below(5)) {
      case 0:
        return sign(w) | infinity;
      case 1:
        return sign(w) | infinity | std::max<std::uint64_t>(w.next() & fraction(), 1);
      case 2:
        return sign(w) | infinity | 1u << w.below(static_cast<std::uint32_t>(m));
      case 3:
        return zero(w);
      default:
        return sign(w) | (infinity - 1);
    }
  }

  std::uint64_t fraction() const { return (std::uint64_t{1} << m) - 1; }
  std::uint64_t sign(Words& w) const { return static_cast<std::uint64_t>(w.next() & 1) << (e + m); }

  int e, m, bias, top;
};

/// Column pairs (k, k + 2) of A equal, of B opposite up to the last bits: their products cancel in
/// chains over even and odd k as well as in one chain over all.
void cancel_pairs(TileData& tile, TileShape s, const Fields& f, Words& w) {
  const std::int64_t distance = s.k >= 4 ? 2 : 1;
  const auto at = [](std::string& bytes, std::int64_t i) {
    return &bytes[static_cast<std::size_t>(2 * i)];
  };
  for (std::int64_t k = 0; k + distance < s.k; ++k) {
    if (k / distance % 2 != 0) continue;
    for (std::int64_t i = 0; i < s.m; ++i)
      std::memcpy(at(tile.a, i * s.k + k + distance), at(tile.a, i * s.k + k), 2);
    for (std::int64_t j = 0; j < s.n; ++j) {
      std::uint16_t code = 0;
      std::memcpy(&code, at(tile.b, k * s.n + j), 2);
      code = static_cast<std::uint16_t>(code ^ 1u << (f.e + f.m) ^ w.below(3));
      std::memcpy(at(tile.b, (k + distance) * s.n + j), &code, 2);
    }
  }
}

/// Only two products are not zero: the smallest normal number of C, and 2^-21 to 2^-27 of it. Their
/// difference rounds to a normal number or to one below, which tells when tininess is judged.
void make_tiny(TileData& tile, TileShape s, const Fields& f, const Fields& g, Words& w) {
  const std::int64_t distance = s.k >= 4 ? 2 : 1;
  const auto power = [&](int exponent) {
    return f.sign(w) | static_cast<std::uint64_t>(exponent + f.bias) << f.m;
  };
  const int half = (1 - g.bias) / 2;
  const auto put = [](std::string& bytes, std::int64_t i, std::uint64_t code) {
    std::memcpy(&bytes[static_cast<std::size_t>(2 * i)], &code, 2);
  };
  for (std::string* bytes : {&tile.a, &tile.b, &tile.c}) bytes->assign(bytes->size(), 0);
  for (std::int64_t i = 0; i < s.m; ++i) {
    put(tile.a, i * s.k, power(half));
    put(tile.a, i * s.k + distance, power(half - 12));
  }
  for (std::int64_t j = 0; j < s.n; ++j) {
    put(tile.b, j, power(1 - g.bias - half));
    put(tile.b, distance * s.n + j, power(1 - g.bias - half - 9 - static_cast<int>(w.below(7))));
  }
}

}  // namespace

TileData float_tile(const Format& operand, const Format& c_format, TileShape s, int kind,
                    Words& w) {
  const Fields f(operand), g(c_format);
  // Products around 2^(1 - bias of C): half of the exponent in each factor.
  const int half_of_smallest = std::max((1 - g.bias) / 2, 1 - f.bias);
  const int wide = f.bias * 2 / 5;
  const auto factor = [&]() -> std::uint64_t {
    switch (kind) {
      case 0:
        return f.between(w, -1, 1);
      case 1:
        return f.between(w, -3, 3);
      case 2:
        return f.between(w, -6, 6);
      case 3:
        return f.between(w, -wide, wide);
      case 5:
        return f.between(w, -4, 0);
      case 6:
        return w.below(4) == 0 ? f.code(w, static_cast<int>(w.below(3)))
                               : f.between(w, half_of_smallest - 8, half_of_smallest + 2);
      case 7:
        return f.finite(w);
      case 8:
        return w.below(2) == 0 ? f.zero(w) : f.between(w, -6, 6);
      case 9:
        return w.below(12) == 0 ? f.special(w) : f.between(w, f.bias / 2 - 3, f.bias / 2 + 1);
      default:
        return f.between(w, -4, 4);
    }
  };
  const auto addend = [&]() -> std::uint64_t {
    switch (kind) {
      case 3:
        return g.between(w, -2 * wide, 2 * wide);
      case 5:
        return g.between(w, 2, std::min(28, g.bias));
      case 6:
        return g.code(w, static_cast<int>(w.below(24)));
      case 7:
        return g.finite(w);
      case 8:
        return g.zero(w);
      case 9:
        return w.below(12) == 0 ? g.special(w) : g.between(w, g.bias - 4, g.bias);
      default:
        return g.between(w, -6, 6);
    }
  };
  const int width = operand.bits / 8;
  TileData tile{array(s.m * s.k, width, factor), array(s.k * s.n, width, factor),
                array(s.m * s.n, c_format.bits / 8, addend)};
  if (kind == 4) cancel_pairs(tile, s, f, w);
  const bool can_be_tiny = s.k >= 2 && f.e == g.e;
  if (kind == 6 && can_be_tiny && w.below(4) == 0) make_tiny(tile, s, f, g, w);
  return tile;
}

TileData integer_tile(int operand_bits, TileShape s, int kind, Words& w) {
  const std::uint32_t half = 1u << (operand_bits - 1);
  const std::uint32_t extremes[] = {half, half - 1, 2 * half - 1, 0};
  const auto factor = [&]() -> std::uint64_t {
    switch (kind) {
      case 1:
        return w.below(4);
      case 2:
        return extremes[w.below(4)];
      case 3:
        return w.below(2) == 0 ? half - 1 : half + 1;
      case 4:
        return w.below(2) == 0 ? 0 : w.next();
      case 7:
        return half;
      default:
        return w.next();
    }
  };
  const auto addend = [&]() -> std::uint64_t {
    switch (kind) {
      case 5:
        return 0x7fffffffu - w.below(100000);
      case 6:
        return 0x80000000u + w.below(100000);
      case 7:
        return w.below(2) == 0 ? 0x7fffffffu - w.below(3) : 0x80000000u + w.below(3);
      case 8:
        return 0;
      default:
        return w.next();
    }
  };
  const int width = operand_bits / 8;
  return {array(s.m * s.k, width, factor), array(s.k * s.n, width, factor),
          array(s.m * s.n, 4, addend)};
}

}  // namespace numemu::oracle::mma
