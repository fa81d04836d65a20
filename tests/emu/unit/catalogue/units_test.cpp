// Every preset, with every modifier: the fast answer is the reference's, on every kind of data.
#include <omp.h>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"

namespace units_test {

using namespace numemu;
using namespace numemu::unit;
using numemu::unit::test::AnyProduct;
using numemu::unit::test::Data;
using numemu::unit::test::kAllData;

namespace {

/// Units that follow a description, with their variants.
std::vector<const Unit*> described_units() {
  std::vector<const Unit*> units;
  for (const Unit* unit : all_units()) {
    if (unit->description() == nullptr) continue;
    for (const Unit* one : with_modifiers(*unit)) units.push_back(one);
  }
  return units;
}

/// K that whole groups of the unit's sparsity fill.
std::int64_t legal_depth(const Unit& unit, std::int64_t k) {
  const Sparsity& s = unit.description()->sparsity;
  return s.dense() ? k : (k + s.group - 1) / s.group * s.group;
}

/// How much was compared, and which units differed where.
class Tally {
 public:
  void compare(const Unit& unit, std::int64_t m, std::int64_t n, std::int64_t k, Data data,
               std::uint64_t seed, bool with_c = true) {
    AnyProduct product(unit, m, n, legal_depth(unit, k), data, seed, with_c);
    const std::int64_t bad = product.mismatches();
    INFO(unit.row().name << " " << m << "x" << n << "x" << k << " data " << static_cast<int>(data));
    CHECK(bad == 0);
    outputs_ += m * n;
    mismatches_ += bad;
  }
  void print(std::size_t units) const {
    WARN(units << " units, " << outputs_ << " outputs, " << mismatches_ << " mismatches");
  }

 private:
  std::int64_t outputs_ = 0, mismatches_ = 0;
};

}  // namespace

TEST_CASE("presets: fast equals reference on small products", "[fast]") {
  Tally tally;
  std::uint64_t seed = 100;
  const auto units = described_units();
  for (const Unit* unit : units) {
    for (const Data data : kAllData) {
      ++seed;
      tally.compare(*unit, 5, 19, 45, data, seed, seed % 3 != 0);
    }
  }
  tally.print(units.size());
}

TEST_CASE("presets: fast equals reference on products of many shapes", "[slow]") {
  Tally tally;
  std::uint64_t seed = 1000;
  const auto units = described_units();
  for (const Unit* unit : units) {
    for (const Data data : kAllData) {
      tally.compare(*unit, 37, 70, 133, data, ++seed);
      tally.compare(*unit, 1, 3, 300, data, ++seed, false);
      tally.compare(*unit, 64, 33, 64, data, ++seed);
    }
  }
  tally.print(units.size());
}

TEST_CASE("presets: threads do not change a bit", "[fast]") {
  const int before = omp_get_max_threads();
  for (const char* name : {"nvidia.h100.wgmma.e4m3.f32", "nvidia.a100.mma.f16.f32",
                           "nvidia.b200.tcgen05.e2m1.f32.nv16", "amd.mi300.mfma.f16.f32",
                           "neutral.mac.e5m10.sr8", "intel.emr.tdpbusd.u8xs8.s32"}) {
    AnyProduct product(find_unit(name), 97, 130, 160, Data::moderate, 7);
    omp_set_num_threads(1);
    const auto one = product.fast();
    for (const int threads : {2, 3}) {
      omp_set_num_threads(threads);
      INFO(name << " " << threads);
      CHECK(product.fast() == one);
    }
  }
  omp_set_num_threads(before);
}

}  // namespace units_test
