// Claims: findings counted, the worst one reported, self-checks excluded.
#include "experiments/engine/claims.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;

namespace {

Finding finding(const char* what, const char* claim, double measured, Verdict verdict) {
  return {what, 1, measured, measured, measured, verdict, /*self_check=*/false, claim};
}

}  // namespace

TEST_CASE("a claim holds with all of its findings and fails with any", "[fast]") {
  const std::vector<Claim> claims = {{"a", "A."}, {"b", "B."}, {"c", "C."}};
  std::vector<Finding> findings = {finding("near", "a", 1.01, Verdict::holds),
                                   finding("far", "a", 1.2, Verdict::holds),
                                   finding("undecided", "b", 1.9, Verdict::undecided),
                                   finding("fails little", "b", 1.5, Verdict::fails),
                                   finding("fails most", "b", 1.6, Verdict::fails),
                                   finding("holds", "b", 1, Verdict::holds)};
  findings.push_back(finding("own sum", "", 2, Verdict::fails));
  findings.back().self_check = true;
  const std::vector<ClaimResult> results = claim_results(claims, findings);
  REQUIRE(results.size() == 3);
  CHECK(results[0].found.verdict() == Verdict::holds);
  CHECK(results[0].found.compared() == 2);
  CHECK(results[0].worst->what == "far");
  CHECK(results[1].found.verdict() == Verdict::fails);
  CHECK(results[1].found.fails == 2);
  CHECK(results[1].found.undecided == 1);
  CHECK(results[1].worst->what == "fails most");
  CHECK(results[2].worst == nullptr);
  CHECK(results[2].found.verdict() == Verdict::none);
}

TEST_CASE("a finding about no claim is an error", "[fast]") {
  CHECK_THAT(message_of([] {
               claim_results({{"a", "A."}}, {finding("lost", "b", 1, Verdict::holds)});
             }),
             Catch::Contains("'lost'") && Catch::Contains("'b'"));
}
