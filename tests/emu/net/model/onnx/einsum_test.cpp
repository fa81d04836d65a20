// Equations of Einsum: labels, ellipsis, the result that is not written.
#include "emu/net/model/onnx/einsum.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace einsum_test {

using Terms = std::vector<std::string>;

TEST_CASE("equations: operands and result, written or not", "[fast]") {
  const numemu::net::EinsumEquation written = numemu::net::parse_equation("b i, ij -> bj");
  CHECK(written.terms == Terms{"bi", "ij"});
  CHECK(written.result == "bj");
  // numpy.einsum: labels that occur once, in the order of letters, behind the ellipsis.
  CHECK(numemu::net::parse_equation("ji,kj").result == "ik");
  CHECK(numemu::net::parse_equation("b...i,ia").result == ".ab");
  CHECK(numemu::net::parse_equation("zA,z").result == "A");
  CHECK(numemu::net::parse_equation("ij->").result == "");
}

TEST_CASE("equations that are none are refused", "[fast]") {
  for (const std::string text : {"i1,j", "i..,j", "......,i", "i->j->k", "i,j->k,l"})
    CHECK_THROWS_AS(numemu::net::parse_equation(text), numemu::Error);
  CHECK_THROWS_AS(numemu::net::parse_equation(std::string(201, 'i')), numemu::Error);
}

}  // namespace einsum_test
