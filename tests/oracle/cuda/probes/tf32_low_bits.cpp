// tf32 operands whose 13 low bits are set: dropped, rounded, or used?
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

struct Case {
  const char* name;
  std::uint64_t code;   ///< of a float32 register
  std::uint64_t times;  ///< the other factor
};
constexpr std::uint64_t kOne = 0x3f800000;
constexpr Case kCases[] = {{"one", 0x3f801fff, kOne},
                           {"half-ulp", 0x3f801000, kOne},
                           {"odd-half-ulp", 0x3f803000, kOne},
                           {"below-half-ulp", 0x3f800fff, kOne},
                           {"minus", 0xbf801fff, kOne},
                           {"largest", 0x7f7fffff, kOne},
                           {"subnormal", 0x00001fff, 0x7f000000},
                           {"nan-or-infinity", 0x7f800001, kOne},
                           {"nan-times-zero", 0x7f800001, 0}};

}  // namespace

void ask_tf32_low_bits(Sheet& sheet) {
  if (sheet.instruction().a != Element::tf32) return;
  for (const Case& each : kCases) {
    const auto draft = [&](const char* operand) {
      return sheet.draft(std::string("tf32-low-bits.") + operand + each.name, "tf32-low-bits");
    };
    sheet.add(draft("a-").codes(0, each.code, each.times));
    if (&each < kCases + 3) sheet.add(draft("b-").codes(0, each.times, each.code));
  }
}

}  // namespace numemu::oracle::recording::probing
