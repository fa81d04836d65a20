// Scales of the largest magnitudes of the last steps.
#include "emu/net/ops/linear.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace delayed_scale_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// A layer whose activations have delayed(2), and the scale that each product was given.
class Delayed {
 public:
  Delayed()
      : layer_(R"j("roles": {"activation": {"format": "float8_e4m3fn", "scale": "delayed(2)"}})j",
               std::make_unique<net::Linear>(2, 1), {2}) {
    layer_.hear([this](const net::Product& p) {
      scale_ = p.a.scale;
      CHECK_FALSE(p.b.scale.has_value());
    });
  }

  /// The scale of a product whose left operand has that largest magnitude.
  std::optional<float> read(float magnitude, net::Phase phase = net::Phase::training) {
    net::Tensor x({1, 2}, magnitude), w({1, 2}, 1.0f), y({1, 1});
    const unit::Gather a = unit::Gather::matrix(1, 2), b = unit::Gather::matrix(1, 2);
    layer_.numerics().product({phase}, {"layer",
                                        net::GemmKind::fprop,
                                        1,
                                        1,
                                        2,
                                        {&x, &a, net::Role::activation, {.width = 2}},
                                        {&w, &b, net::Role::weight, {.width = 2}},
                                        y.data.data(),
                                        {.width = 1}});
    return scale_;
  }
  void end_step() { layer_.numerics().end_step({net::Phase::training}); }
  net::Numerics& numerics() { return layer_.numerics(); }

 private:
  OneLayer layer_;
  std::optional<float> scale_;
};

/// The scale of that largest magnitude.
std::optional<float> of(double magnitude) {
  return RoleQuantizer(element_policy("float8_e4m3fn")).scale_of_magnitude(magnitude);
}

}  // namespace

TEST_CASE("delayed scale: the largest magnitude of each of the last steps", "[fast]") {
  Delayed delayed;
  CHECK_FALSE(delayed.read(5, net::Phase::inference).has_value());  // that of the tensor
  CHECK(delayed.read(3) == 1.0f);
  CHECK(delayed.read(2) == 1.0f);
  delayed.end_step();
  CHECK(delayed.read(5, net::Phase::inference) == of(3));  // sees nothing
  delayed.end_step();                                      // nothing seen: nothing kept
  CHECK(delayed.read(1) == of(3));
  delayed.end_step();
  net::NamedState state;
  delayed.numerics().save_state(state);
  Delayed resumed;
  resumed.numerics().load_state(state);
  CHECK(resumed.read(0.5f) == of(3));
  resumed.end_step();
  CHECK(resumed.read(0.5f) == of(1));
  CHECK(delayed.read(0.5f) == of(3));
  const auto entry = std::find_if(state.begin(), state.end(), [](const auto& s) {
    return s.first == "recipe/history/layer/activation/fprop";
  });
  REQUIRE(entry != state.end());
  entry->second.pop_back();
  CHECK_THROWS_WITH(resumed.numerics().load_state(state), Catch::Contains(entry->first));
}

}  // namespace delayed_scale_test
