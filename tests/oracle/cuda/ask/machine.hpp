// The interface of what executes instructions: a GPU, or a model that uses the same fragments.
#pragma once
#include <string>

#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string name() const = 0;  ///< "NVIDIA H100 80GB HBM3"
  virtual bool has(const Instruction&) const = 0;
  /// Fills batch.d. Throws std::runtime_error with the driver's words.
  virtual void run(Batch& batch) = 0;
};

}  // namespace numemu::oracle::recording
