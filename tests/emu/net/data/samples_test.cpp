// The names of the kinds of data in errors.
#include "emu/net/data/samples.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net::samples_test {
namespace {

TEST_CASE("kinds of data have names", "[fast]") {
  CHECK(to_string(DataKind::images) == "images");
  CHECK(to_string(DataKind::text) == "text");
  CHECK(to_string(DataKind::clicks) == "clicks");
  CHECK_THROWS_AS(to_string(static_cast<DataKind>(9)), Error);
}

}  // namespace
}  // namespace numemu::net::samples_test
