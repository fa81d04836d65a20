// The large runs against the specification's rules: every dot computed again, hashed and compared.
#pragma once
#include <cstdio>
#include <string>

namespace numemu::oracle::recording::replay {

/// FOLDER/hashes.tsv, whose inputs are drawn again; chips by FOLDER/index.tsv. Prints a line per
/// run: hashes that agree, and where the first one differs (its first tile and kind of data). Only
/// runs whose kind and name hold `only`. Seconds per run and thread. Returns the number of runs
/// that differ; a run without a rule is reported and not counted. Throws std::runtime_error that
/// names file and line.
int check_hashes(const std::string& folder, const std::string& only, int threads, std::FILE* out);

}  // namespace numemu::oracle::recording::replay
