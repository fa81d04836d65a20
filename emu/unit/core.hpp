// What every core shares: its row and the checks before a product.
#pragma once
#include <string>
#include <utility>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// A unit built from its row; a core implements the two computations.
class Core : public Unit {
 public:
  explicit Core(UnitRow row) : row_(std::move(row)) {}
  const UnitRow& row() const final { return row_; }
  void multiply(const Gemm&) const final;
  void multiply_reference(const Gemm&) const final;
  /// The row's format, or for "any" every format with a container.
  bool accepts(const Format&) const override;
  std::string operand_rule() const override;

 protected:
  /// The product of accepted operands; m and n are not zero.
  virtual void compute(const Gemm&) const = 0;
  virtual void compute_reference(const Gemm&) const = 0;

 private:
  void check(const Gemm&) const;
  UnitRow row_;
};

/// A core on float32 operands: "any" is then every format whose values are float32 values.
class FloatCore : public Core {
 public:
  using Core::Core;
  bool accepts(const Format&) const override;
  std::string operand_rule() const override;
};

}  // namespace numemu::unit
