// A GPU on paper: tiles pass through the registers that the kernels fill and are read from them by
// other tables; the unit of the catalogue computes them.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "emu/unit/unit.hpp"
#include "tests/oracle/cuda/ask/machine.hpp"
#include "tests/oracle/cuda/paper/tile_registers.hpp"

namespace numemu::oracle::recording {

/// tcgen05, whose operands are never in registers, is computed from the arrays.
class PaperMachine : public Machine {
 public:
  explicit PaperMachine(std::string chip);

  std::string name() const override { return "paper " + chip_; }
  bool has(const Instruction&) const override;
  void run(Batch&) override;

 protected:
  /// D of every tile.
  virtual void compute(Batch&) const;
  /// Before and after the instruction: where a test breaks a layout.
  virtual void disturb(const Instruction&, TileRegisters&) const {}
  virtual void disturb_sums(const Instruction&, TileRegisters&) const {}

 private:
  /// Of the catalogue; nullptr: none.
  const unit::Unit* unit(const Instruction&) const;

  std::string chip_;
  mutable std::map<std::string, std::unique_ptr<unit::Unit>> units_;  ///< by instruction
};

}  // namespace numemu::oracle::recording
