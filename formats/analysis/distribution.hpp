// The named laws of `analyze`: a density to integrate and a generator of numbers from it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "formats/analysis/density.hpp"
#include "formats/random.hpp"

namespace numemu {

/// normal: mean 0, sigma 1. laplace: location 0, scale 1. uniform: on [-1, 1]. student-t:NU: of NU
/// degrees of freedom from 2.5 to 1000, scale 1. lognormal:S: ln|x|
/// normal with mean 0 and sigma S, both signs equally likely; lognormal:S:log2: the same of log2|x|
/// (S ln 2 in ln|x|). `folded`: the law of |x|, for formats without sign.
class Distribution {
 public:
  /// S up to this in ln|x|: the squares of all that matters stay doubles.
  static constexpr double kMostSigma = 10;

  /// Throws Error for another name (with the nearest) or a bad S.
  static Distribution parse(std::string_view text, bool folded);

  /// "normal", "|laplace|", "lognormal:1.5:log2": one name for each law.
  const std::string& name() const { return name_; }
  const Density& density() const { return *density_; }
  /// Number i: the quantile of the 53-bit uniform (r + 1/2) 2^-53 made of the 32-bit pieces 2i and
  /// 2i + 1 of the source; the lowest bit of the latter is the sign of a lognormal. The same bits
  /// on every machine. Student's t is made of two 32-bit uniforms instead (Bailey 1994).
  double draw(const RandomSource&, std::uint64_t i) const;

 private:
  enum class Family : std::uint8_t { normal, laplace, uniform, lognormal, student };
  std::string name_;
  Family family_ = Family::normal;
  bool folded_ = false;
  double sigma_ = 1, nu_ = 0;
  std::shared_ptr<const Density> density_;
};

}  // namespace numemu
