// Parameterised clipping: the end of the range has the gradients of what lies beyond it.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/policies/learn/learning_layer.hpp"

namespace pact_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("pact: the end of a range moves by what lies beyond it", "[fast]") {
  for (const bool sign : {false, true}) {
    INFO(sign);
    LearningLayer layer(sign ? "int4" : "uint4", "tensor",
                        R"j("learn": {"rule": "pact", "decay": 0.5, "method": "sgd"})j", 4);
    layer.start({2, -3, 5, 7});
    layer.step({0.5f, 0.25f, 1, 0.75f}, 0);  // the range ends at 1
    layer.step({0.5f, -4, 1.5f, 0.75f}, 0.01);
    const double end = layer.range().high;
    const double before = layer.activation_scale_before() * end,
                 after = layer.activation_scale() * end;
    CHECK(before == Approx(1));
    // dy/dalpha is 1 beyond the upper end and -1 below the lower end of a signed format.
    double gradient = layer.gradient_of_input(2) + 0.5 * before;
    if (sign) gradient -= layer.gradient_of_input(1);
    CHECK((after - before) / -0.01 == Approx(gradient).epsilon(1e-3));
    CHECK(layer.input_gradients()[1] == 0);
    CHECK(layer.input_gradients()[2] == 0);
    CHECK(layer.input_gradients()[0] != 0);
    CHECK(layer.numerics().learned_ranges().at("layer").weight.empty());
  }
}

}  // namespace pact_test
