// The chip for a driver's name and capability, and the chips that have an instruction.
#include "tests/oracle/cuda/ask/chips.hpp"

#include "tests/catch.hpp"

namespace numemu::oracle::recording::chips_test {

TEST_CASE("chips are told apart by capability and name", "[fast]") {
  CHECK(chip_of("NVIDIA H100 80GB HBM3", 90) == "H100");
  CHECK(chip_of("NVIDIA H200", 90) == "H200");
  CHECK(chip_of("NVIDIA L40S", 89) == "L40S");
  CHECK(chip_of("NVIDIA GeForce RTX 4090", 89) == "Ada");
  CHECK(chip_of("NVIDIA A100-SXM4-40GB", 80) == "A100");
  CHECK(chip_of("NVIDIA B200", 100) == "B200");
  CHECK(chip_of("NVIDIA GeForce RTX 5090", 120) == "RTXBlackwell");
  CHECK(chip_of("Tesla P100", 60).empty());
}

TEST_CASE("every instruction is had by a chip, and only by chips of its range", "[fast]") {
  for (const Instruction& i : instructions()) {
    INFO(name(i.kind) << " " << name(i));
    const std::vector<std::string> chips = chips_with(i);
    CHECK_FALSE(chips.empty());
    for (const std::string& chip : chips) CHECK(has(i, capability_of(chip)));
    CHECK_FALSE(has(i, 61));
  }
  CHECK(capability_of("P100") == 0);
}

}  // namespace numemu::oracle::recording::chips_test
