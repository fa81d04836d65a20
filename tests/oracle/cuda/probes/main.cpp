// Prints what each rule answers to the probes of a chip: docs/hardware/*.md.
#include <iostream>

#include "tests/oracle/cuda/probes/predictions.hpp"
#include "tests/oracle/cuda/replay/chips.hpp"

int main(int count, char** words) {
  const std::string chip = count == 2 ? numemu::oracle::recording::replay::chip_of(words[1]) : "";
  if (chip.empty()) {
    std::cerr << "usage: numemu_predictions CHIP, one of "
              << numemu::oracle::recording::replay::chip_names() << "\n";
    return 2;
  }
  numemu::oracle::recording::print_predictions(std::cout, chip);
}
