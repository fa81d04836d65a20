// Random products for any unit: codes, scales, metadata and C that its description allows.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/random.hpp"

namespace numemu::unit::test {

/// What the numbers of a product are like.
enum class Data {
  codes,       ///< every code, NaN and infinity included
  finite,      ///< every finite code
  moderate,    ///< near 1, as in a network
  wide,        ///< most elements zero, the others anywhere in the range
  cancelling,  ///< neighbours that nearly cancel
  tiny,        ///< subnormal and smallest normal numbers, C tiny too
};
constexpr Data kAllData[] = {Data::codes, Data::finite,     Data::moderate,
                             Data::wide,  Data::cancelling, Data::tiny};

/// A product that owns its arrays.
class AnyProduct {
 public:
  /// `any` is the operand format where the unit takes any.
  AnyProduct(const Unit& unit, std::int64_t m, std::int64_t n, std::int64_t k, Data data,
             std::uint64_t seed, bool with_c = true, const std::string& any = "float8_e4m3fn");
  AnyProduct(const AnyProduct&) = delete;

  const Gemm& gemm() const { return gemm_; }

  std::vector<std::uint8_t> fast();
  std::vector<std::uint8_t> reference();
  /// Elements in which the two differ.
  std::int64_t mismatches();

 private:
  std::uint64_t bits() { return random_.bits(next_++, 32); }
  std::uint64_t below(std::uint64_t n) { return bits() % n; }

  std::uint64_t any_code(const Format& f);
  static bool finite(const Format& f, std::uint64_t code);
  std::uint64_t finite_code(const Format& f);
  /// A normal-like number: the sum of uniform ones, times 2^shift.
  std::uint64_t moderate_code(const Format& f, int shift);
  std::uint64_t tiny_code(const Format& f);

  std::uint64_t draw(const Format& f, Data data, std::int64_t i, std::uint64_t previous);

  static void put(std::vector<std::uint8_t>& array, int bytes, std::int64_t i, std::uint64_t code);

  void fill(const Format& f, std::int64_t n, Data data, std::vector<std::uint8_t>& array);
  /// Scales near one, or anywhere; NaN only among `codes`.
  void fill_scales(const Format& f, std::int64_t n, Data data, std::vector<std::uint8_t>& array);
  void fill_meta(const UnitDescription& u, std::int64_t m, std::int64_t kept);
  void fill_c(const UnitDescription& u, std::int64_t n, Data data);

  const Unit& unit_;
  RandomSource random_;
  std::uint64_t next_ = 0;
  std::vector<std::uint8_t> a_, b_, c_, d_, scale_a_, scale_b_, meta_;
  int d_bytes_ = 4;
  Gather gather_a_, gather_b_;
  Gemm gemm_;
};

}  // namespace numemu::unit::test
