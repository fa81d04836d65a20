// A run with a memory budget for the length of a test.
#pragma once
#include "emu/net/run_context.hpp"

namespace numemu::net::test {

class MemoryBudget {
 public:
  explicit MemoryBudget(std::int64_t bytes) { run_.memory.set_budget(bytes); }

 private:
  RunContext run_;
  RunScope scope_{run_};
};

}  // namespace numemu::net::test
