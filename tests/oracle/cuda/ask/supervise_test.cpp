// Tasks in child processes: their order, and what a task that throws, crashes or hangs costs.
#include "tests/oracle/cuda/ask/supervise.hpp"

#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "tests/catch.hpp"

namespace numemu::gpu {
namespace {

std::vector<std::string> outcomes(int tasks, const std::function<void(int)>& task) {
  std::vector<std::string> said;
  supervise(tasks, 1, task, [&](const Outcome& outcome) {
    CHECK(outcome.task == static_cast<int>(said.size()));
    said.push_back(outcome.done ? "done" : outcome.message);
  });
  return said;
}

}  // namespace

TEST_CASE("every task is done once, in order", "[fast]") {
  CHECK(outcomes(5, [](int) {}) == std::vector<std::string>(5, "done"));
  CHECK(outcomes(0, [](int) {}).empty());
}

TEST_CASE("a task that throws, dies or hangs fails alone", "[fast]") {
  const std::vector<std::string> said = outcomes(6, [](int i) {
    if (i == 1) throw std::runtime_error("an illegal\ninstruction");
    if (i == 2) raise(SIGKILL);
    if (i == 3) _exit(7);
    if (i == 4) pause();
  });
  CHECK(said == std::vector<std::string>{"done", "an illegal instruction", "killed by signal 9",
                                         "ended with status 7", "no answer within 1 s", "done"});
}

}  // namespace numemu::gpu
