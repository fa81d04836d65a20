// Chains: the same bits from every instruction set and under any floating-point environment.
#include "emu/unit/chain/chain.hpp"

#include <hwy/targets.h>

#include <cfenv>
#include <set>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = {
      make_matrices("float32", "float32", 37, 45, 300, {false, true, true}, Fill::any, 1),
      make_matrices("float32", "float32", 45, 11, 33, {true, false, false}, Fill::finite, 2),
      make_matrices("int8", "float8_e4m3fn", 20, 70, 90, {false, false, true}, Fill::finite, 3),
      make_matrices("float8_e5m2", "float8_e5m2", 19, 23, 50, {true, true, true}, Fill::any, 4),
      make_matrices("float4_e2m1fn", "int4", 50, 6, 40, {}, Fill::any, 5),
      make_convolution("float8_e4m3fn", "float32", {2, 14, 14, 1, 5, 2, 1, 1}, 6, Fill::any, 6),
      make_matrices("bfloat16", "float16", 12, 12, 12, {}, Fill::any, 8),
      make_weight_gradient({2, 10, 10, 6, 5, 0, 1, 1}, 16, Fill::finite, 7),
      // Rows of A in place: two slices of the depth, one and a half panels, half a block of rows.
      make_convolution("float32", "float32", {2, 7, 9, 32, 3, 1, 1, 1}, 48, Fill::any, 9),
      make_matrices("float32", "bfloat16", 61, 32, 40, {false, false, true}, Fill::any, 10)};
  return all;
}

std::vector<float> bits_of_all(const std::string& unit) {
  std::vector<float> all, d;
  for (const Problem& p : problems()) {
    find_unit(unit).multiply(p.gemm(d));
    all.insert(all.end(), d.begin(), d.end());
  }
  return all;
}

/// Runs `body` once per instruction set that this machine has and the library was built for.
template <class Body>
std::set<std::string> for_each_target(const Body& body) {
  std::set<std::string> seen;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    if (seen.insert(chain_target()).second) body(chain_target());
    hwy::SetSupportedTargetsForTest(0);
  }
  return seen;
}

}  // namespace

TEST_CASE("chain: every target gives the bits of the reference", "[fast]") {
  for (const char* unit : {"f32.sequential", "exact"}) {
    const std::vector<float> best = bits_of_all(unit);
    std::vector<float> reference, d;
    for (const Problem& p : problems()) {
      find_unit(unit).multiply_reference(p.gemm(d));
      reference.insert(reference.end(), d.begin(), d.end());
    }
    CHECK(differing(best, reference) == 0);
    const auto targets = for_each_target([&](const std::string& target) {
      INFO(unit << " on " << target);
      CHECK(differing(bits_of_all(unit), best) == 0);
    });
#if defined(__x86_64__)
    CHECK(targets.count("SSE4") == 1);
#endif
    CHECK(targets.size() >= 1);
  }
}

TEST_CASE("chain: the caller's rounding mode and flush flags change nothing and survive",
          "[fast]") {
  const std::vector<float> expected = bits_of_all("f32.sequential"), exact = bits_of_all("exact");
  const int before = std::fegetround();
  std::fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // FTZ and DAZ
#endif
  const std::vector<float> got = bits_of_all("f32.sequential"), got_exact = bits_of_all("exact");
  const int mode = std::fegetround();
#if defined(__x86_64__)
  const unsigned flags = _mm_getcsr();
  _mm_setcsr(saved);
  CHECK((flags & 0x8040) == 0x8040);
#endif
  std::fesetround(before);
  CHECK(mode == FE_DOWNWARD);
  CHECK(differing(got, expected) == 0);
  CHECK(differing(got_exact, exact) == 0);
}
