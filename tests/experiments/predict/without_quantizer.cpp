// Predictions with every way to a quantized value cut: the linker puts throwing functions in the
// place of the quantizer and the encoder, and all predictions still come out.
#include <cstdio>
#include <stdexcept>

#include "experiments/predict/accuracy.hpp"
#include "experiments/predict/injected_network.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "tests/experiments/engine/small_bench.hpp"

using namespace numemu;
using namespace numemu::experiments;

// The mangled names are those the build wraps; the control below fails when a signature changes.
extern "C" {
void throwing_quantizer() { throw std::logic_error("a prediction quantized something"); }
void wrapped_quantize_tensor() __asm__("__wrap_" NUMEMU_QUANTIZE_TENSOR);
void wrapped_quantize_tensor() { throwing_quantizer(); }
void wrapped_quantize_blocks() __asm__("__wrap_" NUMEMU_QUANTIZE_BLOCKS);
void wrapped_quantize_blocks() { throwing_quantizer(); }
void wrapped_quantize_columns() __asm__("__wrap_" NUMEMU_QUANTIZE_COLUMNS);
void wrapped_quantize_columns() { throwing_quantizer(); }
void wrapped_encode() __asm__("__wrap_" NUMEMU_ENCODE);
void wrapped_encode() { throwing_quantizer(); }
}

namespace {

template <class Call>
bool throws(Call&& call) {
  try {
    call();
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

/// Blocks along columns, which products of backward have.
bool columns_throw() {
  policies::RolePolicy policy;
  policy.format = &find_format("float4_e2m1fn");
  policy.block = &find_block_format("mxfp4");
  policy.granularity = policies::Granularity::block;
  policy.scale = "floor";
  const std::vector<float> x(64, 1.0f);
  std::vector<float> y(x.size());
  const policies::RoleQuantizer quantizer(policy);
  return throws([&] { quantizer.quantize_columns(1, 32, 2, x.data(), {}, y.data()); });
}

}  // namespace

int main() {
  if (!columns_throw()) {
    std::puts("the control did not throw: the quantizer of columns was not replaced");
    return 1;
  }
  net::Dataset dataset = testing::small_dataset();
  const TrainedNet trained = testing::small_net();
  net::Targets targets;
  const policies::FloatReference reference =
      policies::float_reference(trained.graph, dataset.calibration_batch(0, 128, targets));
  FitCache fits;
  struct Case {
    std::string format, rule, granularity;
  };
  for (const auto& [format, rule, granularity] :
       {Case{"int4", "absmax", ""}, Case{"int4", "mse", ""}, Case{"float8_e4m3fn", "absmax", ""},
        Case{"float8_e4m3fn", "mse", ""}, Case{"mxfp4", "floor", ""}, Case{"mxfp4", "mse", ""},
        Case{"mxfp4", "floor", R"(, "granularity": "tile")"},
        Case{"mxfp4", "mse", R"(, "granularity": "tile")"}}) {
    const std::string role = R"({"format": ")" + format + R"(", "scale": ")" + rule + R"(")";
    const policies::Recipe recipe =
        policies::Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"weight": )" + role +
                                         granularity + R"(}, "activation": )" + role + "}}}",
                                     "recipe");
    std::vector<TensorNoise> noises;
    if (throws([&] {
          noises = predict_tensors({recipe, trained.graph}, reference, fits);
          predict_layers({recipe, trained.graph}, reference);
          net::Numerics exact;
          const std::optional<AccuracyReference> float32 =
              accuracy_reference(trained.graph, dataset, {},
                                 net::evaluate(trained.graph, dataset, net::Split::test, 400, exact,
                                               float32_scores(dataset)));
          const policies::BoundRecipe bound(recipe, trained.graph);
          InjectedNetwork noise(bound, reference, {});
          predict_accuracy(noise, *float32, 0.1);
        })) {
      std::puts("a prediction quantized something");
      return 1;
    }
    // What tiles measure throws inside threads.
    if (granularity.empty() && !throws([&] {
          measure_tensors(noises, {recipe, trained.graph}, reference);
        })) {
      std::puts("the control did not throw: the quantizer was not replaced");
      return 1;
    }
  }
  std::puts("predictions came out without a quantizer");
  return 0;
}
