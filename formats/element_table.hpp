// Elements under one scale by exact comparisons: formats without vector loops that have few values,
// codebooks and floats without mantissa bits.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/conversion.hpp"

namespace numemu {

/// Where elements go. Any may be null, but `open`.
struct ElementArrays {
  float* values = nullptr;  ///< element times scale, rounded once to nearest even
  std::uint8_t* codes = nullptr;
  std::uint8_t* flags = nullptr;
  std::uint8_t* open = nullptr;  ///< 1: float64 does not decide it; the others are undefined then
};

/// What becomes of every real number: a list of points between which nothing changes, with the code
/// and the flags of the reference at each point and beyond it.
class ElementTable {
 public:
  /// The most significant bits of a scale, so that float64 holds its products with float32 numbers.
  static constexpr int kMostScaleBits = 28;

  /// The table of a conversion that saturates; null for other formats, for more than 8 bits, for
  /// stochastic rounding, and where values are not float32 numbers or middles between them not
  /// float64 numbers. Made once for each conversion.
  static const ElementTable* find(const Conversion&);
  explicit ElementTable(const Conversion&);

  /// The largest magnitude of the values.
  double largest() const { return largest_; }

  /// x[i] / scale, exact, rounded once, for finite x; the host rounds to nearest. The scale has at
  /// most kMostScaleBits significant bits; of scale 0 the elements are 0, too. Returns whether some
  /// elements are open.
  bool convert(const float* x, std::int64_t n, double scale, const ElementArrays&) const;

 private:
  struct Element {
    double value = 0;
    std::uint8_t code = 0, flags = 0;
  };
  Element element_of(const Conversion&, double) const;

  std::vector<double> points_;     ///< ascending, from -inf on
  std::vector<Element> elements_;  ///< at point k, then between it and the next one
  Element minus_zero_;
  int point_bits_ = 0;  ///< significant, at most
  double largest_ = 0;
};

}  // namespace numemu
