// Observing numerics: products with operands and results, tensors kept and handed on, steps.
#include "emu/net/observing.hpp"

#include <memory>
#include <vector>

#include "tests/catch.hpp"

namespace numemu::net::observing_test {
namespace {

/// Of inner numerics that change what they are given.
struct Changing final : Numerics {
  void edge(const Step&, const Edge&, Tensor& x) override { x.data[0] = 9; }
  Saved save(const Step&, const Kept&, const SharedTensor&) override { return {}; }
};

TEST_CASE("observers see tensors as the network hands them over", "[fast]") {
  Changing inner;
  std::vector<float> seen;
  std::vector<std::int64_t> samples;
  Observing numerics(
      inner, {.kept = [&](const Step&, const Kept&, const Tensor& x) { seen.push_back(x.data[0]); },
              .edge = [&](const Step&, const Edge&, const Tensor& x) { seen.push_back(x.data[0]); },
              .stepped = [&](std::int64_t n) { samples.push_back(n); }});
  Tensor x({1}, 2);
  numerics.edge({}, {"a"}, x);
  CHECK(x.data[0] == 9);
  CHECK(numerics.save({}, {"a"}, std::make_shared<const Tensor>(Shape{1}, 3)).tensor == nullptr);
  CHECK(seen == std::vector<float>{2, 3});
  const std::vector<std::int64_t> ids = {4, 5};
  numerics.end_step({.samples = &ids});
  numerics.end_step({});  // its samples are not known
  CHECK(samples == std::vector<std::int64_t>{2});
}

TEST_CASE("observers see products before and after, in float32 without inner numerics", "[fast]") {
  const Tensor a({1, 2}, 2), b({1, 2}, 3);
  const unit::Gather gather = unit::Gather::matrix(1, 2);
  float d = 0;
  const Product product{.layer = "a",
                        .m = 1,
                        .n = 1,
                        .k = 2,
                        .a = {.source = &a, .gather = &gather, .stack = {.width = 2}},
                        .b = {.source = &b, .gather = &gather, .stack = {.width = 2}},
                        .d = &d};
  std::vector<float> seen;
  const auto see = [&](const Step&, const Product& p) { seen.push_back(*p.d); };
  Observing({.before = see, .after = see}).product({}, product);
  CHECK(seen == std::vector<float>{0, 12});
  d = 0;
  Observing({}).product({}, product);
  CHECK(d == 12);
}

}  // namespace
}  // namespace numemu::net::observing_test
