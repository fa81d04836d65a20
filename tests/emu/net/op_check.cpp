#include "tests/emu/net/op_check.hpp"

#include <omp.h>

#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::net::test {

Tensor random_tensor(Shape shape, std::uint32_t identity) {
  Tensor tensor(std::move(shape));
  const RandomSource source{17, Stream::vectors, identity, 0};
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    tensor.data[i] =
        static_cast<float>((static_cast<int>(source.bits(i, 16)) * 2 - 65536) * 0x1p-16);
  }
  return tensor;
}

Doubles widened(const Tensor& tensor) { return {tensor.data.begin(), tensor.data.end()}; }

void require_close(const Doubles& expected, const Tensor& actual, double tolerance,
                   const std::string& what) {
  REQUIRE(expected.size() == actual.data.size());
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(expected[i] - actual.data[i]);
    if (!(error <= worst)) worst = error;
  }
  INFO(what);
  CHECK(worst <= tolerance);
}

std::string reading_text(std::string_view name, std::optional<Use> use) {
  constexpr std::array<std::string_view, kUses> kNames{"linear", "sign", "index", "statistic"};
  if (!use) return "";
  return std::string(name) + " (" + std::string(kNames.at(static_cast<std::size_t>(*use))) + ")";
}

Doubles central_differences(const Reference& reference, std::vector<Doubles> arguments,
                            std::size_t index, const Tensor& weights, double step) {
  const auto loss = [&] {
    const Doubles y = reference(arguments);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * weights.data[i];
    return sum;
  };
  Doubles gradient;
  for (double& x : arguments[index]) {
    const double centre = x;
    x = centre + step;
    const double above = loss();
    x = centre - step;
    const double below = loss();
    x = centre;
    gradient.push_back((above - below) / (2 * step));
  }
  return gradient;
}

OpResult run_op(const Op& op, const std::vector<Tensor>& inputs, Numerics& numerics) {
  OpResult result;
  std::vector<Shape> shapes;
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape);
    pointers.push_back(&input);
    result.grad_inputs.emplace_back(input.shape);
  }
  Tensor context;
  const OpCall call{"layer", numerics, Phase::training, 0, {}, &context, &result.buffers};
  result.output = Tensor(op.output_shape(shapes));
  op.forward(call, pointers, result.output);
  result.grad_output = random_tensor(result.output.shape, 2000);
  for (const Parameter& parameter : op.parameters()) {
    result.grad_parameters.push_back(parameter.trained ? Tensor(parameter.value.shape) : Tensor());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!op.input_use(i)) pointers[i] = nullptr;
  }
  const OpCall back{
      .layer = "layer", .numerics = numerics, .phase = Phase::training, .kept = &context};
  op.backward(back, {pointers, op.output_use() ? &result.output : nullptr, result.grad_output,
                     result.grad_inputs, result.grad_parameters, true});
  return result;
}

/// A parameter that is not trained has no gradient, and changes no other.
void check_untrained(Op& op, const std::vector<Tensor>& inputs, Numerics& numerics,
                     const OpResult& expected) {
  for (std::size_t p = 0; p < op.parameters().size(); ++p) {
    const bool trained = std::exchange(op.parameters()[p].trained, false);
    const OpResult result = run_op(op, inputs, numerics);
    op.parameters()[p].trained = trained;
    INFO(op.parameters()[p].name << " untrained");
    CHECK(result.grad_parameters[p].empty());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      CHECK(bits(result.grad_inputs[i]) == bits(expected.grad_inputs[i]));
    for (std::size_t other = 0; other < op.parameters().size(); ++other) {
      if (other != p)
        CHECK(bits(result.grad_parameters[other]) == bits(expected.grad_parameters[other]));
    }
  }
}

void check_op(Op& op, const std::vector<Tensor>& inputs, const Reference& reference,
              double tolerance, const Smoothness& smoothness, Numerics* numerics) {
  Numerics plain;
  std::uint32_t identity = 1000;
  for (Parameter& parameter : op.parameters())
    parameter.value = random_tensor(parameter.value.shape, ++identity);
  std::vector<Doubles> arguments;
  for (const Tensor& input : inputs) arguments.push_back(widened(input));
  for (const Parameter& parameter : op.parameters()) arguments.push_back(widened(parameter.value));

  Numerics& used = numerics == nullptr ? plain : *numerics;
  const OpResult result = run_op(op, inputs, used);
  check_untrained(op, inputs, used, result);
  require_close(reference(arguments), result.output, tolerance, "forward");
  const auto differences = [&](std::size_t index) {
    return central_differences(reference, arguments, index, result.grad_output, smoothness.step);
  };
  const double loose = tolerance + smoothness.truncation();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_close(differences(i), result.grad_inputs[i], loose,
                  "gradient of input " + std::to_string(i));
  }
  for (std::size_t p = 0; p < result.grad_parameters.size(); ++p) {
    if (!op.parameters()[p].trained) continue;
    require_close(differences(inputs.size() + p), result.grad_parameters[p], loose,
                  "gradient of " + op.parameters()[p].name);
  }
}

void check_pointwise(Op& op, const Tensor& x, double (*f)(double), double tolerance, double third) {
  const auto reference = [f](const std::vector<Doubles>& arguments) {
    Doubles y;
    for (const double v : arguments[0]) y.push_back(f(v));
    return y;
  };
  check_op(op, {x}, reference, tolerance, {.third = third});
}

std::vector<std::uint32_t> bits(const Tensor& tensor) {
  std::vector<std::uint32_t> result;
  for (const float v : tensor.data) result.push_back(std::bit_cast<std::uint32_t>(v));
  return result;
}

Tensor forward_of(const Op& op, const std::vector<float>& values) {
  Numerics numerics;
  Tensor x({static_cast<std::int64_t>(values.size())});
  x.data = values;
  Tensor y(x.shape);
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"layer", numerics}, inputs, y);
  return y;
}

void check_threads(const Op& op, const std::vector<Tensor>& inputs, Numerics* numerics) {
  Numerics plain;
  const int threads = omp_get_max_threads();
  std::vector<std::vector<std::uint32_t>> first;
  for (const int count : {1, 2, 3}) {
    omp_set_num_threads(count);
    const OpResult result = run_op(op, inputs, numerics == nullptr ? plain : *numerics);
    std::vector<std::vector<std::uint32_t>> all{bits(result.output)};
    for (const Tensor& gradient : result.grad_inputs) all.push_back(bits(gradient));
    for (const Tensor& gradient : result.grad_parameters) all.push_back(bits(gradient));
    for (const BufferUpdate& update : result.buffers) {
      for (const std::vector<double>& statistic : update.statistics) {
        for (const double value : statistic) {
          const auto whole = std::bit_cast<std::uint64_t>(value);
          all.push_back(
              {static_cast<std::uint32_t>(whole), static_cast<std::uint32_t>(whole >> 32)});
        }
      }
    }
    if (count == 1) first = all;
    INFO(count << " threads");
    CHECK(all == first);
  }
  omp_set_num_threads(threads);
}

double dot_tolerance(std::int64_t k) {
  const double n = static_cast<double>(k) + 1;
  return n * n * 0x1p-24;
}

}  // namespace numemu::net::test
