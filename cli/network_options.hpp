// Options of commands on networks: network, data set, recipe, metrics, gate, memory; and what they
// tell while they run.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/context.hpp"
#include "api/options.hpp"
#include "cli/options.hpp"
#include "experiments/engine/gate.hpp"

namespace numemu::cli {

/// Folders and clock of the program; sentences go to stderr, with `quiet` only those that nobody
/// must miss.
api::Context program_context(bool quiet);

/// The options of a request with these names, in this order. --recipe is the path of the recipe
/// when the command runs, empty where none is given; its help lists the shipped recipes of
/// inference, with `training` all.
void add_options(Command&, const std::vector<api::Option>&, const std::vector<std::string>& names,
                 bool training = false);

/// The file of a recipe (experiments/engine/recipe_files.hpp); "" stays.
std::string recipe_path(const std::string& given);

/// Adds --memory SIZE. Without it the budget is half of api::machine_memory(). Returns the bytes
/// that were asked for, once the command runs; 0 where none were.
std::shared_ptr<const std::int64_t> add_memory(Command&);

/// --gate and --strict: what the accuracy of rows must reach, and the exit code.
struct GateOption {
  std::string target;
  bool strict = false;

  /// The gate; nothing without --gate. Throws Error for what is none.
  std::optional<experiments::Gate> gate() const;
};
void add_gate(Command&, GateOption&);
/// 1 where a row fails its gate or, if `strict`, is undecided; 0 otherwise. Rows that may come
/// (`unfinished`) are undecided.
int gate_code(const std::vector<experiments::Row>& rows, bool strict, bool unfinished = false);

}  // namespace numemu::cli
