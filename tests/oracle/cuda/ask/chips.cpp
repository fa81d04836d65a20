#include "tests/oracle/cuda/ask/chips.hpp"

namespace numemu::oracle::recording {
namespace {

struct Chip {
  const char* name;
  int first, last;       ///< compute capabilities of its family; the first is its own
  const char* marketed;  ///< in the driver's name; "": the whole family
};

// Within a family the chips with a marketed name come first.
constexpr Chip kChips[] = {
    {"V100", 70, 72, ""},     {"T4", 75, 75, ""},
    {"A100", 80, 80, ""},     {"A2", 86, 88, ""},
    {"L40S", 89, 89, "L40S"}, {"Ada", 89, 89, ""},
    {"H200", 90, 90, "H200"}, {"H100", 90, 90, ""},
    {"B200", 100, 119, ""},   {"RTXBlackwell", 120, 129, ""},
};

}  // namespace

std::string chip_of(const std::string& name, int capability) {
  for (const Chip& chip : kChips) {
    if (capability >= chip.first && capability <= chip.last &&
        name.find(chip.marketed) != std::string::npos)
      return chip.name;
  }
  return "";
}

std::vector<std::string> chips_with(const Instruction& i) {
  std::vector<std::string> chips;
  for (const Chip& chip : kChips)
    if (has(i, chip.first)) chips.push_back(chip.name);
  return chips;
}

int capability_of(const std::string& chip) {
  for (const Chip& row : kChips)
    if (chip == row.name) return row.first;
  return 0;
}

}  // namespace numemu::oracle::recording
