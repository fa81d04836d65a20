// Every patch of a unit that some question refutes is refuted by a probe, but for those of a list
// that says why.
#include "emu/oracle/probes/probes.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "emu/oracle/identify/candidates.hpp"
#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"

namespace probes_test {

using namespace numemu;
using namespace numemu::oracle;

namespace {

/// The names of rivals that no probe refutes.
std::string not_refuted(const char* unit, int& rivals) {
  const unit::UnitDescription& u = *unit::find_unit(unit).description();
  const Ports ports = ports_of(u, telling_depth(u));
  std::vector<Dot> dots;
  for (const AskedDot& question : probes(ports)) dots.push_back(question.dot);
  const auto own = evaluate(u, ports, dots);
  std::string names;
  for (const Rival& rival : rivals_of(u)) {
    ++rivals;
    if (gives(rival.description, ports, dots, own)) names += rival.name + "\n";
  }
  return names;
}

}  // namespace

TEST_CASE("a probe refutes every rival that any question refutes", "[fast]") {
  int rivals = 0;
  for (const char* unit :
       {"nvidia.h100.wgmma.bf16.f32", "nvidia.h100.wgmma.f16.f16", "nvidia.h100.mma.e4m3.f32",
        "nvidia.h100.mma.s8.s32.satfinite", "nvidia.h100.mma.f64.f64"}) {
    INFO(unit);
    CHECK(not_refuted(unit, rivals) == "");
  }
  CHECK(rivals > 100);
}

}  // namespace probes_test
