// Bytes kept for backward: packed forms byte by byte, tensors once for all uses, restarts.
#include "emu/net/kept_bytes.hpp"

#include "tests/catch.hpp"

namespace numemu::net::kept_bytes_test {
namespace {

/// Stores 3 bytes for a linear use and everything else as it is.
class Packing final : public Numerics {
  Saved save(const Step&, const Kept& kept, const SharedTensor& x) override {
    if (kept.use == Use::linear) return {nullptr, x->shape, {1, 2, 3}};
    return {x};
  }
};

TEST_CASE("kept bytes: packed copies, shared tensors and statistics are counted", "[fast]") {
  const std::vector<std::int64_t> samples = {5, 6};
  const Step step{Phase::training, 0, &samples};
  const auto tensor = std::make_shared<const Tensor>(Shape{2, 4});  // 32 bytes
  const auto run = [&](KeptBytes& numerics) {
    numerics.begin_step(step);
    numerics.save(step, {"bn", Use::statistic}, tensor);
    for (const Use use : {Use::linear, Use::sign, Use::index})
      numerics.save(step, {"bn", use}, tensor);
    numerics.save(step, {"fc", Use::linear}, tensor);
    numerics.end_step(step);
  };
  Numerics float32;
  Packing packing;
  KeptBytes plain(float32), packed(packing);
  for (KeptBytes* const one : {&plain, &packed}) {
    run(*one);
    CHECK(one->of_epoch(0) == nullptr);
    one->end_epoch({.index = 0});
    run(*one);
  }
  REQUIRE(plain.of_epoch(0) != nullptr);
  CHECK(*plain.of_epoch(0) == KeptBytes::Sums{96, 96, 2});
  // The context, the packed copy and the tensor for sign and index; then a packed copy alone.
  REQUIRE(packed.of_epoch(0) != nullptr);
  CHECK(*packed.of_epoch(0) == KeptBytes::Sums{32 + 3 + 32 + 3, 96, 2});
  CHECK(packed.of_epoch(0)->per_sample() == 35);

  NamedState state;
  packed.save_state(state);
  KeptBytes resumed(packing);
  resumed.load_state(state);
  run(resumed);
  resumed.end_epoch({.index = 1});
  CHECK(*resumed.of_epoch(0) == *packed.of_epoch(0));
  CHECK(*resumed.of_epoch(1) == KeptBytes::Sums{140, 192, 4});
  resumed.load_state({});
  CHECK(resumed.of_epoch(0) == nullptr);
}

}  // namespace
}  // namespace numemu::net::kept_bytes_test
