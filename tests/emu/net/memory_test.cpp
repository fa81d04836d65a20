// The memory budget: claims, what is left, refusals.
#include "emu/net/memory.hpp"

#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/memory_budget.hpp"

namespace numemu::net::memory_test {

TEST_CASE("claims count against the budget while they live", "[fast]") {
  const test::MemoryBudget budget(1000);
  CHECK(memory_left() == 1000);
  {
    const MemoryClaim first(100, "a");
    CHECK(memory_left() == 600);
    CHECK_THROWS_WITH(MemoryClaim(151, "output y"),
                      "output y: needs 604 bytes, but the memory budget of 1000 bytes (--memory) "
                      "has only 600 bytes left");
    const MemoryClaim second(150, "b");
    CHECK(memory_left() == 0);
  }
  CHECK(memory_left() == 1000);
  CHECK_THROWS(MemoryClaim(std::numeric_limits<std::int64_t>::max(), "more than there are bytes"));
}

TEST_CASE("two runs of a process count apart", "[fast]") {
  RunContext one, other;
  one.memory.set_budget(1000);
  other.memory.set_budget(500);
  const RunScope scope(one);
  const MemoryClaim of_one(200, "a");
  {
    const RunScope inner(other);
    const MemoryClaim of_other(100, "b");
    CHECK(memory_left() == 100);
  }
  CHECK(memory_left() == 200);
  CHECK(other.memory.claimed() == 0);
}

TEST_CASE("without a budget everything fits", "[fast]") {
  const MemoryClaim claim(std::int64_t{1} << 50, "much");
  CHECK(memory_left() == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("bytes as text", "[fast]") {
  CHECK(bytes_text(1023) == "1023 bytes");
  CHECK(bytes_text(std::int64_t{700} << 20) == "700.0 MiB");
  CHECK(bytes_text(std::int64_t{3} << 29) == "1.5 GiB");
}

}  // namespace numemu::net::memory_test
