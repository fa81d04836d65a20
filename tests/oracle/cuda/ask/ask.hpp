// Runs all measurements of one instruction on a machine and writes the results to a folder.
#pragma once
#include <cstdint>
#include <string>

#include "tests/oracle/cuda/ask/machine.hpp"

namespace numemu::oracle::recording {

struct AskOptions {
  std::uint64_t seed = 1;
  int threads = 1;     ///< that generate inputs; the answers do not depend on it
  std::string unit;    ///< chip_of() the machine: "H100"
  std::string source;  ///< the machine: GPU, driver and toolkit in words
  int tiles = 0;       ///< of the large run; 0: large_run_tiles()
};

/// The measurements of one instruction.
struct Asked {
  std::string
      layout_faults;  ///< not empty: nothing else was measured, since results would mean nothing
  std::int64_t dots = 0;
  int records = 0, probes = 0;
};

/// First the layout (check_layout), then the large run (hashes, and a sample as records), the
/// probes and the step maps. Writes FOLDER/index.tsv, probes.tsv, records/, probes/, hashes.bin,
/// hashes.tsv, steps.tsv; of a wrong layout faults/ alone. number: the place in instructions().
/// Throws what the machine throws, and where a file cannot be written.
Asked ask(Machine&, int number, const AskOptions&, const std::string& folder);

}  // namespace numemu::oracle::recording
