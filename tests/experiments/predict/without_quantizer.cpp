// Predictions with every way to a quantized value cut: the linker puts throwing functions in the
// place of the quantizer and the encoder, and all predictions still come out.
#include <cstdio>
#include <stdexcept>

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

}  // namespace

int main() {
  net::Dataset dataset = testing::small_dataset();
  const TrainedNet trained = testing::small_net();
  net::Targets targets;
  const policies::FloatReference reference =
      policies::float_reference(trained.graph, dataset.calibration_batch(0, 128, targets));
  FitCache fits;
  for (const std::string format : {"int4", "float8_e4m3fn", "mxfp4"}) {
    for (const std::string rule : {format == "mxfp4" ? "floor" : "absmax", "mse"}) {
      const std::string role = R"({"format": ")" + format + R"(", "scale": ")" + rule + R"("})";
      const policies::Recipe recipe =
          policies::Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"weight": )" + role +
                                           R"(, "activation": )" + role + "}}",
                                       "recipe");
      std::vector<TensorNoise> noises;
      if (throws([&] {
            noises = predict_tensors(recipe, trained.graph, reference, fits);
            predict_layers(recipe, trained.graph, reference);
          })) {
        std::puts("a prediction quantized something");
        return 1;
      }
      if (!throws([&] { measure_tensors(noises, recipe, trained.graph, reference); })) {
        std::puts("the control did not throw: the quantizer was not replaced");
        return 1;
      }
    }
  }
  std::puts("predictions came out without a quantizer");
  return 0;
}
