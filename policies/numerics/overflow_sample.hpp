// Counts sums that left the range of a register on the way, of a sample of a unit's results.
#pragma once
#include <atomic>
#include <cstdint>

#include "emu/unit/unit.hpp"
#include "policies/numerics/operand_counts.hpp"

namespace numemu::policies {

/// Whether what exceeds the register's range stays a finite number: two's complement, registers
/// that saturate, and those whose rounding stops at the largest number. Others become infinite.
bool hides_overflow(const unit::Register&);

/// A unit that looks at some results of its products once more. Fast paths tell no overflow inside
/// a sum; the reference does, but takes a hundred times longer. Of each product kSampledLines
/// evenly spaced rows and columns meet, unless no sum of these formats leaves the registers. Sparse
/// products are not sampled.
class OverflowSample final : public unit::Unit {
 public:
  static constexpr std::int64_t kSampledLines = 4;

  explicit OverflowSample(const unit::Unit& unit) : unit_(unit) {}
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
  mutable std::atomic<std::int64_t> sampled_ = 0, overflowed_ = 0;
};

}  // namespace numemu::policies
