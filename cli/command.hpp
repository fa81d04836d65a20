// What the commands share: the list of them, exit codes, threads, folders and the clock.
#pragma once
#include <string>

#include "cli/options.hpp"

namespace numemu::cli {

inline constexpr int kFine = 0, kMismatch = 1, kBadUsage = 2;

void add_formats(Program&);
void add_analyze(Program&);
void add_encode(Program&);
void add_decode(Program&);
void add_quantize(Program&);
void add_dequantize(Program&);
void add_units(Program&);
void add_gemm(Program&);
void add_dot(Program&);
void add_vectors(Program&);
void add_verify(Program&);
void add_identify(Program&);
void add_train(Program&);
void add_tune(Program&);
void add_eval(Program&);
void add_infer(Program&);
void add_experiment(Program&);
void add_export(Program&);
void add_sweep(Program&);
void add_report(Program&);
void add_config(Program&);

/// Adds --threads, which sets the number of OpenMP threads (results do not depend on it).
/// Of more than the machine has processors at most 16 are started; the command throws Error where
/// the system refuses them, before OpenMP would end the program.
void add_threads(Command&);
/// The shipped data folder ($NUMEMU_DATA or where the program was built) and the cache folder
/// ($NUMEMU_CACHE, $XDG_CACHE_HOME/numemu or ~/.cache/numemu).
std::string data_folder();
std::string cache_folder();
/// Seconds of a steady clock.
double seconds();

}  // namespace numemu::cli
