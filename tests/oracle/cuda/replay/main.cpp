// replay: records of a GPU against the rules of the specification, in integers only.
#include "tests/oracle/cuda/replay/command.hpp"

int main(int count, char** arguments) {
  return numemu::oracle::recording::replay::replay_command({arguments + 1, arguments + count},
                                                           stdout, stderr);
}
