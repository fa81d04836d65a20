// A memory budget for the length of a test.
#pragma once
#include "emu/net/memory.hpp"

namespace numemu::net::test {

class MemoryBudget {
 public:
  explicit MemoryBudget(std::int64_t bytes) { set_memory_budget(bytes); }
  ~MemoryBudget() { set_memory_budget(before_); }
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

 private:
  std::int64_t before_ = memory_budget();
};

}  // namespace numemu::net::test
