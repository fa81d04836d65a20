// One unit over the matrices of a stack.
#include "emu/net/product.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace product_test {

using namespace numemu;
using namespace numemu::policies::test;

TEST_CASE("every matrix of a stack is multiplied with its own or the shared one", "[fast]") {
  const unit::Unit& unit = unit::find_unit("f32.sequential");
  const Format& float32 = find_format("float32");
  const net::Tensor a = noise({2, 4, 3, 6}, 1), own = noise({2, 5, 3, 6}, 2),
                    one = noise({5, 6}, 3);
  const unit::Gather ga = unit::Gather::matrix(4, 6), gb = unit::Gather::matrix(5, 6);
  for (const bool shared : {false, true}) {
    net::Tensor d({2, 4, 3, 5});
    net::Product p;
    p.layer = "heads";
    p.m = 4;
    p.n = 5;
    p.k = 6;
    p.a = {&a, &ga, net::Role::activation, {.outer = 2, .inner = 3, .width = 6}};
    p.b = {&own, &gb, net::Role::activation, {.outer = 2, .inner = 3, .width = 6}};
    if (shared) p.b = {&one, &gb, net::Role::weight, {.width = 6}};
    p.d = d.data.data();
    p.d_stack = {.outer = 2, .inner = 3, .width = 5};
    net::multiply(unit, p, {&float32, a.data.data()}, {&float32, p.b.source->data.data()});
    for (std::int64_t i = 0; i < 6; ++i) {
      const auto matrix = [&](const net::ProductSide& side, std::int64_t rows) {
        return gathered(side, i, rows, p.k, 0.0f,
                        [&](std::int64_t e) { return side.source->data[e]; });
      };
      CHECK(differences(result_of(p, i), product_of(unit, p, matrix(p.a, 4), matrix(p.b, 5))) == 0);
    }
    p.d_stack.outer = 3;
    CHECK_THROWS_WITH(
        net::multiply(unit, p, {&float32, a.data.data()}, {&float32, p.b.source->data.data()}),
        Catch::Contains("heads") && Catch::Contains("stack"));
  }
}

TEST_CASE("a prepared side gives the same bits, and is refused by another unit", "[fast]") {
  const unit::Unit& unit = unit::find_unit("nvidia.h100.mma.f16.f32");
  const Format& float16 = find_format("float16");
  const std::vector<std::uint16_t> a(4 * 6, 0x3c01), b(5 * 6, 0xb803);
  const unit::Gather ga = unit::Gather::matrix(4, 6), gb = unit::Gather::matrix(5, 6);
  const net::Tensor source_a({4, 6}), source_b({5, 6});
  std::vector<float> plain(20), with(20);
  net::Product p;
  p.layer = "fc";
  p.m = 4;
  p.n = 5;
  p.k = 6;
  p.a = {&source_a, &ga, net::Role::activation, {.width = 6}};
  p.b = {&source_b, &gb, net::Role::weight, {.width = 6}};
  p.d = plain.data();
  p.d_stack = {.width = 5};
  net::multiply(unit, p, {&float16, a.data()}, {&float16, b.data()});
  CHECK(plain[0] < 0);
  const auto kept = unit.prepare({&float16, b.data(), &gb}, 5, 6);
  p.d = with.data();
  for (int times = 0; times < 2; ++times) {
    with.assign(20, 0);
    net::multiply(unit, p, {&float16, a.data()}, {&float16, b.data(), kept.get()});
    CHECK(with == plain);
  }
  CHECK_THROWS_WITH(net::multiply(unit::find_unit("nvidia.a100.mma.f16.f32"), p,
                                  {&float16, a.data()}, {&float16, b.data(), kept.get()}),
                    Catch::Contains("prepare"));
}

TEST_CASE("a reader of stacks copies only what lies apart", "[fast]") {
  const std::vector<std::uint8_t> data = {0, 1, 2, 3, 4, 5, 6, 7};
  net::StackReader apart({.outer = 2, .inner = 2}, 2, 1, data.data());
  const auto at = [&](std::int64_t b, int i) { return static_cast<int>(apart.at(b)[i]); };
  CHECK(at(0, 0) == 0);
  CHECK(at(0, 1) == 2);
  CHECK(at(3, 0) == 5);
  CHECK(at(3, 1) == 7);
  net::StackReader together({.outer = 4}, 2, 1, data.data());
  CHECK(static_cast<const void*>(together.at(1)) == data.data() + 2);
}

}  // namespace product_test
