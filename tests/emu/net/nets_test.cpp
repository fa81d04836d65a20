// The reference networks: sizes, names, kinds of data, other input shapes, learning, threads.
#include "emu/net/nets.hpp"

#include <omp.h>

#include <map>

#include "emu/net/forward.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/build/learning.hpp"
#include "tests/emu/net/data/files.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::nets_test {
namespace {

/// Small samples of what each network takes.
struct Small {
  Shape input;
  std::int64_t classes;
};

Small small(const std::string& name) {
  if (net_kind(name) == DataKind::clicks) return {{clicks::kFeatures}, 2};
  if (net_kind(name) == DataKind::text) return {{9}, 13};
  return {name.starts_with("lenet") ? Shape{16, 16, 3} : Shape{8, 8, 3}, 7};
}

TEST_CASE("lenet and mlp have the published sizes", "[fast]") {
  CHECK(build_net("lenet", {28, 28, 1}, 10).parameter_count() == 61706);
  CHECK(build_net("mlp", {28, 28, 1}, 10).parameter_count() ==
        784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  CHECK(build_net("mlp-bn", {28, 28, 1}, 10).parameter_count() ==
        785 * 256 + 2 * 256 + 257 * 256 + 2 * 256 + 257 * 10);
  CHECK(build_net("lenet-bn", {28, 28, 1}, 10).parameter_count() ==
        61706 + 2 * (6 + 16 + 120 + 84));
  const Graph lenet = build_net("lenet", {28, 28, 1}, 10);
  std::vector<std::string> names;
  for (const Parameter* p : lenet.parameters())
    names.push_back(p->name + " " + to_string(p->value.shape));
  CHECK(names == std::vector<std::string>{"conv1.weight [6, 5, 5, 1]", "conv1.bias [6]",
                                          "conv2.weight [16, 5, 5, 6]", "conv2.bias [16]",
                                          "fc1.weight [120, 400]", "fc1.bias [120]",
                                          "fc2.weight [84, 120]", "fc2.bias [84]",
                                          "fc3.weight [10, 84]", "fc3.bias [10]"});
}

TEST_CASE("sizes follow the input", "[fast]") {
  for (const std::string& name : net_names()) {
    INFO(name);
    const auto [input, classes] = small(name);
    test::Lesson lesson = test::lesson(name, input, classes);
    Shape expected = {test::kBatch, classes};
    if (net_kind(name) == DataKind::text) expected.insert(expected.begin() + 1, input[0]);
    Numerics numerics;
    CHECK(forward(lesson.graph, lesson.x, numerics).shape == expected);
    CHECK(lesson.graph.name == name);
  }
  CHECK(build_net("lenet", {32, 32, 3}, 10).parameters()[4]->value.shape == Shape{120, 6 * 6 * 16});
  CHECK(build_net("vgg-small", {28, 28, 1}, 10).parameters().front()->value.shape ==
        Shape{32, 3, 3, 1});
}

TEST_CASE("every network learns as a whole", "[fast]") {
  for (const std::string& name : net_names()) {
    INFO(name);
    const auto [input, classes] = small(name);
    test::check_learning(test::lesson(name, input, classes), 1e-3);
  }
}

TEST_CASE("losses and gradients are the same bits for 1 and 2 and 3 threads", "[fast]") {
  const int threads = omp_get_max_threads();
  for (const std::string& name : net_names()) {
    if (name == "resnet32" || name == "resnet56") continue;  // more of the same blocks
    INFO(name);
    const auto [input, classes] = small(name);
    const test::Lesson lesson = test::lesson(name, input, classes);
    omp_set_num_threads(1);
    const std::string one = test::learn(lesson).digest;
    for (const int count : {2, 3}) {
      omp_set_num_threads(count);
      CHECK(test::learn(lesson).digest == one);
    }
  }
  omp_set_num_threads(threads);
}

TEST_CASE("unknown networks and inputs that are too small are refused", "[fast]") {
  CHECK_THROWS_WITH(build_net("lenat", {28, 28, 1}, 10), Catch::Contains("lenet"));
  CHECK_THROWS_WITH(net_kind("resnet21"), Catch::Contains("resnet20"));
  CHECK_THROWS_AS(build_net("lenet", {4, 4, 1}, 10), Error);
  CHECK_THROWS_AS(build_net("lenet", {784}, 10), Error);
  CHECK_THROWS_AS(build_net("vgg-small", {4, 4, 3}, 10), Error);
}

TEST_CASE("dlrm(WIDTH): rows, perceptrons and pairs of that width", "[fast]") {
  const std::int64_t n = clicks::kCategorical + 1;  // vectors: categories and the dense features
  std::int64_t rows = 0;
  for (const std::int64_t vocabulary : clicks::kVocabularies) rows += vocabulary;
  for (const std::int64_t w : {1, 5, 16}) {
    INFO(w);
    const std::string name = "dlrm(" + std::to_string(w) + ")";
    CHECK(net_kind(name) == DataKind::clicks);
    const Graph graph = build_net(name, {clicks::kFeatures}, 2);
    const std::int64_t pairs = n * (n - 1) / 2;
    const std::int64_t bottom = (clicks::kDense + 1) * 4 * w + (4 * w + 1) * w;
    const std::int64_t top = (w + pairs + 1) * 4 * w + (4 * w + 1) * 2 * w + (2 * w + 1) * 2;
    CHECK(graph.parameter_count() == rows * w + bottom + top);
  }
  CHECK(build_net("dlrm(16)", {clicks::kFeatures}, 2).parameter_count() ==
        build_net("dlrm-small", {clicks::kFeatures}, 2).parameter_count());
  for (const char* wrong : {"dlrm(0)", "dlrm(08)", "dlrm(4097)", "dlrm(x)", "dlrm()"}) {
    INFO(wrong);
    CHECK_THROWS_WITH(net_kind(wrong), Catch::Contains("expected dlrm(WIDTH), WIDTH from 1 to "));
  }
  CHECK_THROWS_WITH(net_kind("dlrm(8"), Catch::Contains("unknown network"));
}

TEST_CASE("binarynet(WIDTH): three hidden layers of that width, all products normalised",
          "[fast]") {
  for (const std::int64_t w : {3, 64}) {
    const Graph graph = build_net("binarynet(" + std::to_string(w) + ")", {28, 28, 1}, 10);
    // Weights without biases, a gain and a bias for each result.
    CHECK(graph.parameter_count() == 784 * w + 2 * w * w + 10 * w + 2 * (3 * w + 10));
  }
  CHECK(net_kind("binarynet(1024)") == DataKind::images);
  CHECK_THROWS_WITH(net_kind("binarynet(0)"), Catch::Contains("expected binarynet(WIDTH), WIDTH"));
}

TEST_CASE("networks take one kind of data and say so", "[fast]") {
  const Dataset images = test::synthetic_dataset(), clicks = load_dataset("clicks", "");
  CHECK(build_net("mlp", images).parameter_count() ==
        build_net("mlp", {8, 8, 1}, 10).parameter_count());
  CHECK(build_net("dlrm-small", clicks).inputs[0].shape == Shape{clicks::kFeatures});
  const auto message = [](const char* name, const Dataset& data) {
    return numemu::test::message_of([&] { build_net(name, data); });
  };
  CHECK(message("lenet", clicks) == "network lenet: expected images, data set clicks has clicks");
  CHECK(message("lstm-char", images) ==
        "network lstm-char: expected text, data set synthetic has images");
  CHECK(message("dlrm-small", images) ==
        "network dlrm-small: expected clicks, data set synthetic has images");
  const auto shape_message = [](const char* name, const Shape& shape) {
    return numemu::test::message_of([&] { build_net(name, shape, 10); });
  };
  CHECK(shape_message("dlrm-small", {20}) ==
        "network dlrm-small: expected records [21] of clicks, got [20]");
  CHECK(shape_message("char-transformer", {8, 8, 1}) ==
        "network char-transformer: expected windows [context] of a text, got [8, 8, 1]");
  CHECK(shape_message("resnet20", {64}) == "network resnet20: conv1 needs images, got [1, 64]");
}

}  // namespace
}  // namespace numemu::net::nets_test
