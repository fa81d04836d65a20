// Sections: self times add up, nothing is kept without a profile.
#include "emu/net/profile.hpp"

#include "tests/catch.hpp"

namespace numemu::net::profile_test {
namespace {

double now = 0;  // a clock that moves only by hand
double read_clock() { return now; }

TEST_CASE("a section's time leaves out the sections inside it", "[fast]") {
  start_profile(&read_clock);
  now = 0;
  {
    const Section outer(SectionKind::forward, "conv1", "conv2d");
    now += 1;
    {
      const Section inner(SectionKind::gemm, "conv1", "fprop", 100);
      now += 5;
    }
    now += 2;
  }
  const std::vector<ProfileRow> rows = end_profile();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].kind == SectionKind::gemm);
  CHECK(rows[0].seconds == 5);
  CHECK(rows[0].macs == 100);
  CHECK(rows[1].what == "conv2d");
  CHECK(rows[1].seconds == 3);
  CHECK(rows[1].calls == 1);
}

TEST_CASE("without a profile sections leave nothing", "[fast]") {
  { const Section section(SectionKind::data, "", "batch"); }
  CHECK(end_profile().empty());
}

TEST_CASE("sections of several threads are merged", "[fast]") {
  start_profile(&read_clock);
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 30; ++i) const Section section(SectionKind::update, "", "sgd", 2);
  const std::vector<ProfileRow> rows = end_profile();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].calls == 30);
  CHECK(rows[0].macs == 60);
  CHECK(to_string(rows[0].kind) == "update");
}

}  // namespace
}  // namespace numemu::net::profile_test
