// A GPU's name to the chip whose rules it follows.
#include "tests/oracle/cuda/replay/chips.hpp"

#include <sstream>
#include <utility>
#include <vector>

namespace numemu::oracle::recording::replay {
namespace {

const std::vector<std::pair<std::string, std::string>>& table() {
  static const std::vector<std::pair<std::string, std::string>> kTable = {
#define NUMEMU_GPU_CHIP(word, chip) {word, #chip},
#include "tests/oracle/cuda/replay/chips.def"
#undef NUMEMU_GPU_CHIP
  };
  return kTable;
}

}  // namespace

std::string chip_of(const std::string& gpu) {
  std::string spaced = gpu;
  for (char& c : spaced)
    if (c == '-' || c == '_' || c == '/') c = ' ';
  for (const auto& [word, chip] : table()) {
    std::istringstream words(spaced);
    for (std::string w; words >> w;)
      if (w == word) return chip;
  }
  return "";
}

std::string chip_names() {
  std::string names;
  for (const auto& [word, chip] : table())
    if ((" " + names + " ").find(" " + chip + " ") == std::string::npos)
      names += (names.empty() ? "" : " ") + chip;
  return names;
}

}  // namespace numemu::oracle::recording::replay
