#include "formats/analysis/verdict.hpp"

#include <array>

namespace numemu {
namespace {

constexpr std::array<const char*, 6> kNames = {"holds", "fails",   "undecided",
                                               "",      "refused", "withheld"};

}  // namespace

const char* to_string(Verdict verdict) { return kNames[static_cast<std::size_t>(verdict)]; }

Verdict parse_verdict(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i]) return static_cast<Verdict>(i);
  }
  return Verdict::none;
}

}  // namespace numemu
