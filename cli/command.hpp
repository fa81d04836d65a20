// What every command is: it adds itself to the program and returns an exit code when run.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace numemu::cli {

/// Set by the parser of the chosen command; run after parsing.
using Action = std::function<int()>;

inline constexpr int kFine = 0, kMismatch = 1, kBadUsage = 2;

void add_formats(CLI::App&, Action&);
void add_analyze(CLI::App&, Action&);
void add_encode(CLI::App&, Action&);
void add_decode(CLI::App&, Action&);
void add_quantize(CLI::App&, Action&);
void add_dequantize(CLI::App&, Action&);
void add_units(CLI::App&, Action&);
void add_gemm(CLI::App&, Action&);
void add_train(CLI::App&, Action&);
void add_eval(CLI::App&, Action&);
void add_infer(CLI::App&, Action&);
void add_experiment(CLI::App&, Action&);
void add_sweep(CLI::App&, Action&);
void add_report(CLI::App&, Action&);
void add_config(CLI::App&, Action&);

/// Adds --threads, which sets the number of OpenMP threads (results do not depend on it).
/// Of more than the machine has processors at most 16 are started.
void add_threads(CLI::App&);
/// Throws Error where the system refuses the threads that will be used; OpenMP would end the
/// program.
void require_threads();
/// Checks an option for a whole number from `least` to `most`, also where it does not fit an
/// integer.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
/// The shipped data folder ($NUMEMU_DATA or where the program was built) and the cache folder
/// ($NUMEMU_CACHE, $XDG_CACHE_HOME/numemu or ~/.cache/numemu).
std::string data_folder();
std::string cache_folder();
/// Seconds of a steady clock.
double seconds();

}  // namespace numemu::cli
