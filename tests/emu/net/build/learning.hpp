// Checks that a network learns as a whole: every trained parameter gets a gradient, and a step
// against it lowers the loss by what the gradient promises.
#pragma once
#include <cmath>
#include <string>

#include "emu/net/backward.hpp"
#include "emu/net/data/clicks.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/losses.hpp"
#include "formats/digest.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::test {

inline constexpr std::int64_t kBatch = 8;

/// A network and a batch that fits it.
struct Lesson {
  Graph graph;
  Tensor x;
  std::vector<std::int32_t> labels;
};

/// The untrained network with random weights, and random samples of its kind of data.
inline Lesson lesson(const std::string& name, const Shape& input, std::int64_t classes) {
  Lesson lesson{build_net(name, input, classes), {}, {}};
  initialize(lesson.graph, 1);
  Shape shape = input;
  shape.insert(shape.begin(), kBatch);
  const DataKind kind = net_kind(name);
  const RandomSource random{3, Stream::vectors, 77, 0};
  const auto below = [&](std::size_t i, std::int64_t count) {
    return static_cast<std::int64_t>(random.uniform(i) * static_cast<double>(count));
  };
  lesson.x = random_tensor(shape, 5);
  if (kind == DataKind::text) {
    for (std::size_t i = 0; i < lesson.x.data.size(); ++i)
      lesson.x.data[i] = static_cast<float>(below(1000 + i, classes));
  }
  if (kind == DataKind::clicks) lesson.x.data = clicks::generate(0, kBatch).features;
  const std::int64_t targets = kind == DataKind::text ? lesson.x.size() : kBatch;
  for (std::int64_t i = 0; i < targets; ++i)
    lesson.labels.push_back(static_cast<std::int32_t>(below(i, classes)));
  return lesson;
}

struct LossAndGradients {
  double loss = 0;
  std::vector<Tensor> gradients;
  std::string digest;  ///< of both
};

inline LossAndGradients learn(const Lesson& lesson) {
  Numerics numerics;
  Tape tape = forward_training(lesson.graph, lesson.x, numerics);
  Tensor gradient;
  const Classified seen = cross_entropy(tape.output, lesson.labels, &gradient);
  LossAndGradients result;
  for (const double loss : seen.loss) result.loss += loss / static_cast<double>(seen.loss.size());
  std::string bytes(reinterpret_cast<const char*>(seen.loss.data()),
                    seen.loss.size() * sizeof(double));
  result.gradients = backward(lesson.graph, std::move(tape), std::move(gradient), numerics);
  for (const Tensor& g : result.gradients)
    bytes.append(reinterpret_cast<const char*>(g.data.data()), g.data.size() * sizeof(float));
  result.digest = sha256_hex(bytes);
  return result;
}

/// The step is chosen to lower the loss by `part` of it if the loss were linear in the parameters.
inline void check_learning(Lesson lesson, double part) {
  const LossAndGradients before = learn(lesson);
  const std::vector<Parameter*> parameters = lesson.graph.parameters();
  double square = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    INFO(parameters[p]->name);
    double own = 0;
    for (const float g : before.gradients[p].data) own += double{g} * double{g};
    CHECK(std::isfinite(own));
    CHECK((own > 0) == parameters[p]->trained);
    square += own;
  }
  REQUIRE(square > 0);
  const double rate = part * before.loss / square;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    for (std::size_t i = 0; i < before.gradients[p].data.size(); ++i) {
      float& value = parameters[p]->value.data[i];
      value = static_cast<float>(value - rate * before.gradients[p].data[i]);
    }
  }
  const double lowered = (before.loss - learn(lesson).loss) / (part * before.loss);
  // Curvature takes its share of a small step; a wrong gradient of a layer promises too much.
  CHECK(lowered > 0.9);
  CHECK(lowered < 1.1);
}

}  // namespace numemu::net::test
