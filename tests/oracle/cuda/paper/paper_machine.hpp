// A GPU on paper: tiles pass through the registers that the kernels fill, are read from them by
// other tables, and every dot follows a rule.
#pragma once
#include "tests/oracle/cuda/ask/machine.hpp"
#include "tests/oracle/cuda/paper/tile_registers.hpp"
#include "tests/oracle/cuda/replay/rule.hpp"

namespace numemu::oracle::recording {

/// tcgen05, whose operands are never in registers, is computed from the arrays.
class PaperMachine : public Machine {
 public:
  /// A chip that rules() knows; `rule` counts from the first of an instruction, the
  /// specification's.
  explicit PaperMachine(std::string chip, std::size_t rule = 0);

  std::string name() const override { return "paper " + chip_; }
  bool has(const Instruction&) const override;
  void run(Batch&) override;

 protected:
  /// The code of one dot.
  virtual std::uint64_t dot(const Dot&) const;
  /// Before and after the instruction: where a test breaks a layout.
  virtual void disturb(const Instruction&, TileRegisters&) const {}
  virtual void disturb_sums(const Instruction&, TileRegisters&) const {}

 private:
  std::string chip_;
  std::size_t rule_;
  Rule asked_;  ///< the rule of the instruction that runs
};

}  // namespace numemu::oracle::recording
