// Sums that left the range of a register on the way, counted in a sample of a unit's results.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "emu/unit/unit.hpp"

namespace numemu::policies {

/// Results of a unit whose register saturates, wraps or stops at its largest number.
struct SaturationCounts {
  /// Of a register that saturates or stops: all results, and those at an end of it.
  std::int64_t results = 0, at_end = 0;
  /// Results that the reference computed again, and those whose register saturated or stopped at
  /// any addition, or whose sum wrapped.
  std::int64_t sampled = 0, overflowed = 0;

  bool any() const { return at_end + overflowed > 0; }
  bool looked() const { return results + sampled > 0; }
  double ends() const { return part(at_end, results); }  ///< share of results at an end
  /// That of the sample, because sums may leave an end again; that of results at an end where the
  /// sample shows no more than chance does (two standard errors), because it misses what is rare.
  double share() const {
    const double seen = part(overflowed, sampled);
    const double chance =
        2 * std::sqrt(static_cast<double>(overflowed)) / std::max<double>(1, sampled);
    return at_end == 0 || seen - chance > ends() ? seen : ends();
  }
  SaturationCounts& operator+=(const SaturationCounts& other) {
    results += other.results;
    at_end += other.at_end;
    sampled += other.sampled;
    overflowed += other.overflowed;
    return *this;
  }

 private:
  static double part(std::int64_t some, std::int64_t all) {
    return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0;
  }
};

/// Whether what exceeds the register's range stays a finite number: two's complement, registers
/// that saturate, and those whose rounding stops at the largest number. Others become infinite.
bool hides_overflow(const unit::Register&);
/// Whether it is in two's complement.
bool wraps(const unit::Register&);

/// What a unit's registers do with a sum that exceeds their range: "saturated on the way", where
/// every addition counts; "wrapped", where the result does; "became NaN or infinite".
std::string_view overflow_words(const unit::UnitDescription&);
inline constexpr std::string_view kNotFiniteWords = "became NaN or infinite";
inline constexpr std::string_view kAtEndWords = "ended at a register's end";

/// "32.1 % of 112"; "0 of 112" where there are none.
std::string counted_share(std::int64_t some, std::int64_t all);

/// A unit that looks at some results of its products once more. Fast paths tell no overflow inside
/// a sum; the reference does, but takes a hundred times longer. Of each product kSampledResults are
/// computed again, spread over all, other ones in every draw, unless no sum of these formats leaves
/// the registers. Sparse products are not sampled.
class OverflowSample final : public unit::Unit {
 public:
  static constexpr std::int64_t kSampledResults = 16;

  /// `draw`: the number of the batch or step, so that batches look at other pixels.
  explicit OverflowSample(const unit::Unit& unit, std::int64_t draw = 0)
      : unit_(unit), draw_(draw) {}
  const unit::UnitRow& row() const override { return unit_.row(); }
  const unit::UnitDescription* description() const override { return unit_.description(); }
  void multiply(const unit::Gemm&) const override;
  void multiply_reference(const unit::Gemm& g) const override { unit_.multiply_reference(g); }
  bool accepts_a(const Format& f) const override { return unit_.accepts_a(f); }
  bool accepts_b(const Format& f) const override { return unit_.accepts_b(f); }
  std::string operand_rule() const override { return unit_.operand_rule(); }

  /// `sampled` and `overflowed` of all products so far.
  SaturationCounts counts() const { return {.sampled = sampled_, .overflowed = overflowed_}; }

 private:
  void look(const unit::Gemm&) const;

  const unit::Unit& unit_;
  const std::int64_t draw_;
  mutable std::atomic<std::int64_t> sampled_ = 0, overflowed_ = 0;
};

}  // namespace numemu::policies
