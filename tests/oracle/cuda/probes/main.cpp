// Prints the results of each rule for the probes of a chip: docs/hardware/*.md.
#include <iostream>

#include "tests/oracle/cuda/ask/chips.hpp"
#include "tests/oracle/cuda/probes/predictions.hpp"

int main(int count, char** words) {
  using namespace numemu::oracle::recording;
  if (count != 2 || capability_of(words[1]) == 0) {
    std::cerr << "usage: numemu_predictions CHIP, for example H100\n";
    return 2;
  }
  print_predictions(std::cout, words[1]);
}
