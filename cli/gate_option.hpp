// --gate and --strict: what the accuracy of rows must reach, and the exit code.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "experiments/engine/gate.hpp"

namespace numemu::cli {

struct GateOption {
  std::string target;
  bool strict = false;

  /// The gate; nothing without --gate. Throws Error for what is none.
  std::optional<experiments::Gate> gate() const;
};

void add_gate(Command&, GateOption&);

/// 1 where a row fails its gate or, if `strict`, is undecided; 0 otherwise. Rows that may come
/// (`unfinished`) are undecided.
int gate_code(const std::vector<Json>& rows, bool strict, bool unfinished = false);

}  // namespace numemu::cli
