// Numbers as little-endian bytes.
#include "policies/state_bytes.hpp"

#include "tests/catch.hpp"

namespace state_bytes_test {

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("numbers survive as bytes and a broken length is refused", "[fast]") {
  const std::vector<std::uint64_t> numbers = {1, 0xfedcba9876543210u, bits_of(-0.1)};
  const std::string bytes = to_bytes(numbers);
  CHECK(bytes.size() == 24);
  CHECK(bytes[0] == 1);
  CHECK(from_bytes("s", bytes) == numbers);
  CHECK(double_of(from_bytes("s", bytes)[2]) == -0.1);
  CHECK_THROWS_WITH(from_bytes("s", "123"), Catch::Contains("state s"));
}

}  // namespace state_bytes_test
