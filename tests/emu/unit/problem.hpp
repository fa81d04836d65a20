// Random products for the tests of units: codes, gathers and C of any format and layout.
#pragma once
#include <bit>
#include <cstdint>
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

float any_float(Dice& dice);

OperandData make_operand(const std::string& format, std::int64_t source_size, Gather gather,
                         Fill fill, Dice& dice);

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

Problem make_matrices(const std::string& format_a, const std::string& format_b, std::int64_t m,
                      std::int64_t n, std::int64_t k, MatrixLayout layout, Fill fill,
                      std::uint64_t seed);

/// A convolution as a product: `images` of height x width x channels, padded by `pad`, kernel x
/// kernel taps.
struct Convolution {
  std::int64_t images = 1, height = 8, width = 8, channels = 3, kernel = 3, pad = 1, dilation = 1,
               stride = 1;
};

Gather patches(const Convolution& s);

Problem make_convolution(const std::string& format_a, const std::string& format_b,
                         const Convolution& shape, std::int64_t outputs, Fill fill,
                         std::uint64_t seed);

/// The weight gradient of the same convolution: A the output gradients, B the patches, depth runs
/// over pixels.
Problem make_weight_gradient(const Convolution& shape, std::int64_t outputs, Fill fill,
                             std::uint64_t seed);

/// Number of elements whose bits differ.
std::int64_t differing(const std::vector<float>& x, const std::vector<float>& y);

/// Bits in which the unit's fast answer and its reference differ.
std::int64_t mismatches(const Unit& unit, const Problem& problem);

/// Every named format an operand of the unit can have, of at most `bits` bits.
std::vector<std::string> operand_formats(const Unit& unit, int bits);

}  // namespace numemu::unit::test
