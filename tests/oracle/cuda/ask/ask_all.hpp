// Asks a machine all it has, task by task in child processes, with progress, and puts the answers
// together.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/oracle/cuda/ask/ask.hpp"
#include "tests/oracle/cuda/ask/ask_conversion.hpp"

namespace numemu::oracle::recording {

/// The machine to measure. The functions are called in a child process.
struct Respondent {
  std::string unit;               ///< chip_of() it
  std::string source;             ///< GPU, driver and toolkit in words
  std::string table;              ///< the same as a table, kept as OUT/gpu.tsv
  std::vector<int> instructions;  ///< numbers in instructions()
  std::vector<int> conversions;   ///< numbers in conversions()
  std::function<std::unique_ptr<Machine>()> machine;
  Converter converter;
};

struct AskAllOptions {
  std::string out;
  std::string program;  ///< identifies the build; a run does not resume with another
  std::string only;     ///< part of "kind name"; empty: everything
  std::uint64_t seed = 1;
  int threads = 1;
  int patience_s = 120;  ///< an instruction takes seconds
  int tiles = 0;         ///< of the large run; 0: large_run_tiles()
};

/// Returns the number of tasks that failed: that crashed, hung, threw, or whose layout is wrong.
/// `say` gets a line per task. A run that was killed resumes where it was; throws
/// std::runtime_error when OUT holds something else.
int ask_all(const Respondent&, const AskAllOptions&,
            const std::function<void(const std::string&)>& say);

}  // namespace numemu::oracle::recording
