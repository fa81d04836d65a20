// Evaluation: the same bits for any thread count, errors from worker threads, counts of images.
#include "emu/net/train/evaluate.hpp"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/losses.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::evaluate_test {
namespace {

TEST_CASE("evaluation is the same for 1, 2 and 3 threads and agrees with one big batch", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 1);
  Numerics numerics;
  Targets targets;
  const Tensor x = data.validation_batch(0, data.validation_count(), targets);
  const Classified all = cross_entropy(forward(graph, x, numerics), targets.classes);
  Evaluation first;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    const Evaluation e = evaluate(graph, data, Split::validation, 0, numerics);
    CHECK(e.n == data.validation_count());
    CHECK(e.samples == data.validation_count());
    CHECK(e.right == all.right);
    if (threads == 1) first = e;
    CHECK(e.loss == first.loss);
    CHECK(e.correct == first.correct);
  }
  omp_set_num_threads(omp_get_num_procs());
  double sum = 0;
  for (const double loss : all.loss) sum += loss;
  CHECK(first.loss ==
        Approx(sum / static_cast<double>(first.n)).epsilon(1e-12));  // 5000 float64 additions
}

TEST_CASE("evaluation of the first images of a split", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const Graph graph = build_net("mlp", data.input_shape(), data.classes());
  Numerics numerics;
  CHECK(evaluate(graph, data, Split::test, 65, numerics).n == 65);
  CHECK(evaluate(graph, data, Split::test, 0, numerics).n == 200);
  CHECK(evaluate(graph, data, Split::calibration, 0, numerics).n == Dataset::kCalibration);
  CHECK_THROWS_WITH(evaluate(graph, data, Split::test, 201, numerics),
                    Catch::Contains("201") && Catch::Contains("200"));
  CHECK_THROWS_AS(evaluate(graph, data, Split::test, -1, numerics), Error);
  CHECK_THROWS_WITH(evaluate(graph, data, Split::train, 1, numerics),
                    Catch::Contains("training split"));
}

TEST_CASE("a network has one output for each class of the data", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Numerics numerics;
  for (const std::int64_t more : {-1, 1}) {
    const Graph graph = build_net("mlp", data.input_shape(), data.classes() + more);
    CHECK_THROWS_WITH(evaluate(graph, data, Split::test, 1, numerics),
                      Catch::Contains("outputs, one for each class of data set"));
  }
}

TEST_CASE("maps with more classes than outputs may hold places without a label", "[fast]") {
  class Maps final : public Samples {
   public:
    Maps() {
      facts_ = images_.samples()->facts();
      facts_.target_shape = {2, 2};
    }
    void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
              TargetSpan targets) const override {
      std::int32_t label = 0;
      images_.samples()->read(part, id, draw, x, {&label, nullptr});
      if (targets.classes != nullptr) std::fill_n(targets.classes, 4, 0);
    }

   private:
    Dataset images_ = test::synthetic_dataset();
  };
  const Dataset data("maps", std::make_shared<Maps>());
  Numerics numerics;
  const Graph fewer = build_net("mlp", data.input_shape(), data.classes() - 1);
  CHECK_THROWS_WITH(evaluate(fewer, data, Split::test, 1, numerics),
                    Catch::EndsWith("leave it out: ignore=9"));
  const Graph more = build_net("mlp", data.input_shape(), data.classes() + 1);
  CHECK_THROWS_WITH(evaluate(more, data, Split::test, 1, numerics), Catch::EndsWith("classes=11"));
}

TEST_CASE("targets of another form than the network's outputs say how to give them", "[fast]") {
  class Others final : public Samples {
   public:
    explicit Others(bool one_hot) {
      facts_ = images_.samples()->facts();
      facts_.target = one_hot ? TargetKind::classes : TargetKind::values;
      facts_.target_shape = one_hot ? Shape{3} : Shape{};
      facts_.classes = one_hot ? 2 : 0;
    }
    void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
              TargetSpan targets) const override {
      std::int32_t label = 0;
      images_.samples()->read(part, id, draw, x, {&label, nullptr});
      if (targets.classes != nullptr) std::fill_n(targets.classes, 3, label == 0 ? 1 : 0);
      if (targets.values != nullptr) *targets.values = static_cast<float>(label);
    }

   private:
    Dataset images_ = test::synthetic_dataset();
  };
  Numerics numerics;
  const Dataset one_hot("npy", std::make_shared<Others>(true)),
      numbers("npy", std::make_shared<Others>(false));
  const Graph graph = build_net("mlp", one_hot.input_shape(), 3);
  CHECK_THROWS_WITH(
      evaluate(graph, one_hot, Split::test, 1, numerics),
      Catch::EndsWith("; if the targets are one-hot, give the number of the class of each sample"));
  CHECK_THROWS_WITH(evaluate(graph, numbers, Split::test, 1, numerics),
                    Catch::EndsWith("; if the targets are classes, give them as integers"));
}

TEST_CASE("an error inside a thread comes out", "[fast]") {
  class Refusing final : public Numerics {
    void product(const Step&, const Product&) override { throw Error("no such product"); }
  } numerics;
  const Dataset data = test::synthetic_dataset();
  const Graph graph = build_net("mlp", data.input_shape(), data.classes());
  CHECK_THROWS_WITH(evaluate(graph, data, Split::test, 0, numerics), "no such product");
}

}  // namespace
}  // namespace numemu::net::evaluate_test
