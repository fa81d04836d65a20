// The unit of each golden file, and how its D is compared.
#pragma once
#include <span>
#include <string_view>

#include "tests/oracle/mma/golden_batch.hpp"

namespace numemu::oracle::mma {

enum class Reading : std::uint8_t {
  as_is,
  zero_c,   ///< the machine's accumulator was zero, contrary to the file
  any_nan,  ///< the bits of NaN are artefacts of the host that ran the model
};

struct GoldenUnit {
  std::string_view file;  ///< as in the index
  std::string_view unit;
  Reading reading = Reading::as_is;

  NanMatch nan() const { return reading == Reading::any_nan ? NanMatch::any : NanMatch::bits; }
};

/// A file with the results of one of two rival models, undecided by hardware.
struct Disputed {
  std::string_view file, reason;
};

std::span<const GoldenUnit> hardware_units();  ///< of index_hw_leeds.tsv
std::span<const GoldenUnit> model_units();     ///< of index_mmasim.tsv
std::span<const Disputed> disputed_files();
/// nullptr: not mapped.
const GoldenUnit* find_golden_unit(std::span<const GoldenUnit> table, std::string_view file);

}  // namespace numemu::oracle::mma
