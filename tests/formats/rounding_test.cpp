// Names of rounding rules and overflow modes, both ways, and their errors.
#include "formats/rounding.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::rounding_test {
namespace {

using Catch::Matchers::Message;

TEST_CASE("rounding: names come back in canonical spelling", "[fast]") {
  for (const char* name :
       {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(1)", "sr(8,a)", "sr(16,b)", "sr(32,odd)"})
    CHECK(to_string(parse_rounding(name)) == name);
  CHECK(to_string(parse_rounding("sr(8,c)")) == "sr(8)");
  CHECK(parse_rounding("sr(8)") == Rounding{RoundingMode::sr, StochasticVariant::c, 8});
  for (const char* name : {"saturate", "propagate", "ieee"})
    CHECK(to_string(parse_overflow(name)) == name);
}

TEST_CASE("rounding: unknown names offer the nearest, bad arguments say what was expected",
          "[fast]") {
  CHECK_THROWS_MATCHES(parse_rounding("rnee"), Error,
                       Message("unknown rounding 'rnee'; did you mean 'rne'?"));
  CHECK_THROWS_MATCHES(parse_overflow("saturated"), Error,
                       Message("unknown overflow mode 'saturated'; did you mean 'saturate'?"));
  CHECK_THROWS_MATCHES(parse_rounding("sr"), Error,
                       Message("rounding 'sr': expected the number of random bits, as in sr(8)"));
  for (const char* name :
       {"sr(0)", "sr(33)", "sr()", "sr(8 )", "sr(-1)", "sr(99999999999)", "sr(x,a)"})
    CHECK_THROWS_MATCHES(parse_rounding(name), Error,
                         Message("rounding '" + std::string(name) +
                                 "': expected 1..32 random bits, as in sr(8) or sr(8,a)"));
  for (const char* name : {"sr(8,)", "sr(8,d)", "sr(8,a,b)"})
    CHECK_THROWS_MATCHES(parse_rounding(name), Error,
                         Message("rounding '" + std::string(name) +
                                 "': expected variant a, b, c or odd, as in sr(8,a)"));
}

}  // namespace
}  // namespace numemu::rounding_test
