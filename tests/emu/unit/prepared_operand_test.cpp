// Prepared operands: the same bits on every unit, computed once, and refused where they do not fit.
#include "emu/unit/prepared_operand.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "emu/unit/lanes/lanes.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"

namespace prepared_operand_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

std::vector<std::uint8_t> product_of(const Unit& unit, Gemm g, std::size_t bytes) {
  std::vector<std::uint8_t> d(bytes);
  g.d = d.data();
  unit.multiply(g);
  return d;
}

}  // namespace

TEST_CASE("prepared operands: the same bits on every unit, product after product", "[fast]") {
  for (const Unit* unit : all_units()) {
    const UnitDescription* u = unit->description();
    if (u == nullptr) continue;
    const std::string any = u->core == CoreKind::xnor ? "sign1" : "float16";
    INFO(unit->row().name);
    for (const Data data : {Data::moderate, Data::codes}) {
      AnyProduct one(*unit, 2, 33, 64, data, 3, true, any),
          two(*unit, 2, 33, 64, data, 4, true, any);
      if (!unit->accepts(*one.gemm().a.format) && u->a == nullptr) continue;
      const Gemm first = one.gemm();
      Gemm second = two.gemm();
      second.b = first.b;
      second.scale_b = first.scale_b;
      const auto plain_first = one.fast();
      const std::size_t bytes = plain_first.size();
      const auto plain_second = product_of(*unit, second, bytes);
      const auto b = unit->prepare(first.b, first.n, first.k, first.scale_b);
      const auto with_b = [&](Gemm g) {
        g.b.prepared = b.get();
        return product_of(*unit, g, bytes);
      };
      CHECK(with_b(first) == plain_first);
      CHECK(with_b(second) == plain_second);
    }
  }
}

TEST_CASE("prepared operands: later products read no codes again", "[fast]") {
  for (const char* name : {"nvidia.h100.wgmma.e4m3.f32", "nvidia.h100.mma.f16.f32",
                           "nvidia.b200.tcgen05.e4m3.f32.mx32", "nvidia.b200.tcgen05.e2m1.f32.nv16",
                           "amd.mi300.mfma.f16.f32", "amd.mi200.mfma.f16.f32",
                           "neutral.mac.hfp16_e6m9", "neutral.f32.sequential"}) {
    const Unit& unit = find_unit(name);
    if (!FlushGuard::kSupported && std::string_view(name) == "amd.mi200.mfma.f16.f32") {
      WARN("skipped: this CPU computes " << name << " by the reference alone");
      continue;
    }
    AnyProduct product(unit, 5, 40, 64, Data::moderate, 3);
    Gemm g = product.gemm();
    const Format& format = *g.b.format;
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(64 * 40 * container_bytes(format)));
    std::memcpy(codes.data(), g.b.codes, codes.size());
    g.b.codes = codes.data();
    const std::size_t bytes = product.fast().size();
    const auto b = unit.prepare(g.b, g.n, g.k, g.scale_b);
    g.b.prepared = b.get();
    const auto before = product_of(unit, g, bytes);
    std::ranges::fill(codes, std::uint8_t{0});
    INFO(name);
    CHECK(product_of(unit, g, bytes) == before);
    g.b.prepared = nullptr;
    CHECK(product_of(unit, g, bytes) != before);
  }
}

TEST_CASE("prepared operands: any number of threads compute each thing once", "[fast]") {
  struct Number {
    int n;
  };
  struct Other {
    int n;
  };
  const Gather gather = Gather::matrix(2, 2);
  const std::uint8_t codes[4] = {};
  const Operand operand{&find_format("float8_e4m3fn"), codes, &gather};
  const PreparedOperand kept(operand, 2, 2, nullptr, PreparedOperand::Lifetime::products);
  std::atomic<int> made = 0, wrong = 0;
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 100; ++i) {
    const auto number = kept.once<Number>([&](const Operand& o) {
      ++made;
      return Number{o.gather == &gather ? 0 : 7};  // of its own gather
    });
    const auto other = kept.once<Other>([&](const Operand&) { return Other{8}; });
    wrong += number->n != 7 || other->n != 8;
  }
  CHECK(made == 1);
  CHECK(wrong == 0);
}

TEST_CASE("prepared operands: a product with another operand or unit is refused", "[fast]") {
  const Unit& unit = find_unit("nvidia.h100.wgmma.e4m3.f32");
  AnyProduct product(unit, 5, 40, 64, Data::moderate, 3);
  const Gemm plain = product.gemm();
  const auto b = unit.prepare(plain.b, plain.n, plain.k);
  const auto refused = [&](const auto& change) {
    Gemm g = plain;
    g.b.prepared = b.get();
    change(g);
    try {
      unit.multiply(g);
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Catch::Contains("h100.wgmma.e4m3.f32"));
      return true;
    }
    return false;
  };
  const Gather transposed = Gather::matrix(40, 64), copy = *plain.b.gather;
  CHECK_FALSE(refused([](Gemm&) {}));
  CHECK_FALSE(refused([&](Gemm& g) { g.b.gather = &copy; }));
  CHECK(refused([&](Gemm& g) { g.b.gather = &transposed; }));
  CHECK(refused([](Gemm& g) { g.n = 39; }));
  CHECK(refused([](Gemm& g) { g.b.codes = g.a.codes; }));
  CHECK(refused([&](Gemm& g) {
    static const auto elsewhere = find_unit("nvidia.ada.mma.e4m3.f32").prepare(g.b, g.n, g.k);
    g.b.prepared = elsewhere.get();
  }));
}

}  // namespace prepared_operand_test
