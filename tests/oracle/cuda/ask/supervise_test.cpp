// Tasks in child processes: their order, and what a task that throws, crashes or hangs costs.
#include "tests/oracle/cuda/ask/supervise.hpp"

#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::supervise_test {
namespace {

constexpr int kPatience_s = 3;  // above any stall of a loaded machine

std::vector<std::string> outcomes(int tasks, const std::function<void(int)>& task) {
  std::vector<std::string> said;
  supervise(tasks, kPatience_s, task, [&](const Outcome& outcome) {
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
                                         "ended with status 7", "no answer within 3 s", "done"});
}

TEST_CASE("no child outlives a report that throws", "[fast]") {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const auto write_after_a_while = [&](int i) {
    if (i == 0) return;
    usleep(50000);
    CHECK(write(pipe_ends[1], "x", 1) == 1);
  };
  const auto stop = [](const Outcome&) { throw std::runtime_error("stop"); };
  CHECK_THROWS_WITH(supervise(2, 10, write_after_a_while, stop), "stop");
  close(pipe_ends[1]);
  char byte = 0;
  CHECK(read(pipe_ends[0], &byte, 1) == 0);
  close(pipe_ends[0]);
}

}  // namespace numemu::oracle::recording::supervise_test
