// The elements that the products of a layer read under masks.
#include <array>
#include <map>

#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace mask_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;
using net::GemmKind;
using net::Role;

namespace {

/// Roles with masks, "" for none.
std::string masks(const std::string& weight, const std::string& activation,
                  const std::string& dgrad, const std::string& wgrad) {
  const auto role = [](const std::string& mask) {
    return mask.empty() ? "null" : R"j({"mask": ")j" + mask + "\"}";
  };
  return R"j("roles": {"weight": )j" + role(weight) + R"j(, "activation": )j" + role(activation) +
         R"j(, "gradient": {"dgrad": )j" + role(dgrad) + R"j(, "wgrad": )j" + role(wgrad) + "}}";
}

/// The most non-zero elements in `group` neighbours along the depth of an operand.
std::int64_t most_kept(const net::ProductSide& side, const net::Product& p, std::int64_t rows,
                       std::int64_t group) {
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < p.d_stack.count(); ++b) {
    const std::vector<float> m =
        gathered(side, b, rows, p.k, 0.0f, [&](std::int64_t e) { return side.source->data[e]; });
    for (std::int64_t g = 0; g < rows * p.k; g += group) {
      std::int64_t kept = 0;
      for (std::int64_t i = g; i < g + group; ++i) kept += m[i] != 0;
      most = std::max(most, kept);
    }
  }
  return most;
}

/// What every product of a step reads, and that its result is the product of it.
class Reader {
 public:
  template <class Op>
  Reader(const std::string& roles, Op op, const net::Shape& shape)
      : layer(roles, std::make_unique<Op>(std::move(op)), {shape.begin() + 1, shape.end()}) {
    layer.hear([this](const net::Product& p) { read(p); });
    run_op(layer.op(), shape, layer.in_training(3));
  }

  using Key = std::pair<GemmKind, Role>;
  std::map<Key, std::vector<float>> sources;
  std::map<Key, std::int64_t> most;
  OneLayer layer;

 private:
  void read(const net::Product& p) {
    sources[{p.kind, p.a.role}] = p.a.source->data;
    sources[{p.kind, p.b.role}] = p.b.source->data;
    most[{p.kind, p.a.role}] = p.k % 4 == 0 ? most_kept(p.a, p, p.m, 4) : -1;
    most[{p.kind, p.b.role}] = p.k % 4 == 0 ? most_kept(p.b, p, p.n, 4) : -1;
    std::vector<float> expected(static_cast<std::size_t>(p.d_stack.count() * p.m * p.n));
    net::Product dense = p;
    dense.d = expected.data();
    net::Numerics().product({}, dense);
    CHECK(differences({p.d, p.d + expected.size()}, expected) == 0);
  }
};

/// Linear layers, convolutions and grouped ones: `check` sees what each read.
template <class Check>
void for_each_op(const char* weight, const char* activation, const char* dgrad, const char* wgrad,
                 const Check& check) {
  const std::string roles = masks(weight, activation, dgrad, wgrad);
  check(Reader(roles, net::Linear(16, 8, false), {8, 16}));
  net::Conv2dOptions options{.in_channels = 8,
                             .out_channels = 12,
                             .kernel_height = 3,
                             .kernel_width = 3,
                             .pad = 1,
                             .bias = false};
  check(Reader(roles, net::Conv2d(options), {2, 4, 4, 8}));
  options.groups = 2;
  options.out_channels = 8;
  check(Reader(roles, net::Conv2d(options), {2, 4, 4, 8}));
}

constexpr std::pair kFprop(GemmKind::fprop, Role::weight), kDgrad(GemmKind::dgrad, Role::weight);
constexpr std::pair kForward(GemmKind::fprop, Role::activation),
    kUpdate(GemmKind::wgrad, Role::activation), kBack(GemmKind::dgrad, Role::gradient),
    kLeft(GemmKind::wgrad, Role::gradient);

}  // namespace

TEST_CASE("masked operands: a weight has one mask, along the depth of fprop", "[fast]") {
  for_each_op("greedy(2:4)", "", "", "", [](const Reader& r) {
    CHECK(r.most.at(kFprop) == 2);
    CHECK(r.most.at(kDgrad) > 2);
    CHECK(r.sources.at(kFprop) == r.sources.at(kDgrad));
    CHECK(r.most.at(kLeft) == 4);
  });
  for_each_op("transposable(2:4)", "", "", "", [](const Reader& r) {
    CHECK(r.most.at(kFprop) == 2);
    CHECK(r.most.at(kDgrad) == 2);
    CHECK(r.sources.at(kFprop) == r.sources.at(kDgrad));
  });
}

TEST_CASE("masked operands: an activation has one mask, along its channels", "[fast]") {
  for_each_op("", "greedy(2:4)", "", "", [](const Reader& r) {
    CHECK(r.most.at(kForward) == 2);
    CHECK(r.sources.at(kForward) == r.sources.at(kUpdate));
  });
}

TEST_CASE("masked operands: a gradient is masked for the product that reads it", "[fast]") {
  for_each_op("", "", "greedy(2:4)", "greedy(2:4)", [](const Reader& r) {
    CHECK(r.most.at(kBack) <= 2);
    CHECK(r.most.at(kLeft) == 2);
    CHECK(r.sources.at(kBack) != r.sources.at(kLeft));
  });
  // Along one axis the same draws leave the same tensor to both.
  for (const char* mask : {"mvue(2:4,axis=batch)", "greedy(1:2,axis=batch)", "stochastic(0.7)"}) {
    for_each_op("", "", mask, mask, [](const Reader& r) {
      CHECK(r.sources.at(kBack) == r.sources.at(kLeft));
      CHECK(std::count(r.sources.at(kLeft).begin(), r.sources.at(kLeft).end(), 0.0f) > 0);
    });
  }
  for_each_op("", "", "", "mvue(1:2)", [](const Reader& r) {
    CHECK(r.most.at(kBack) >= 3);
    CHECK(r.most.at(kLeft) == 2);
  });
}

TEST_CASE("masked operands: each mask has its own threshold", "[fast]") {
  const auto zeros = [](const std::vector<float>& x) {
    return std::count(x.begin(), x.end(), 0.0f);
  };
  const auto counted = [&](const char* activation, const char* dgrad, const char* wgrad) {
    const Reader reader(masks("", activation, dgrad, wgrad), net::Linear(16, 16, false), {16, 16});
    return std::array{zeros(reader.sources.at(kForward)), zeros(reader.sources.at(kBack)),
                      zeros(reader.sources.at(kLeft))};
  };
  const std::int64_t few = counted("", "hard(0.2)", "")[1], many = counted("", "hard(0.9)", "")[1];
  REQUIRE(few < many);
  CHECK(counted("", "hard(0.2)", "hard(0.9)") == std::array<std::int64_t, 3>{0, few, many});
  CHECK(counted("", "hard(0.9)", "hard(0.2)") == std::array<std::int64_t, 3>{0, many, few});
  const auto three = counted("hard(0.2)", "hard(0.9)", "hard(0.9)");
  CHECK((three[1] == many && three[2] == many && three[0] > 0));
}

TEST_CASE("masked operands: a recurrence refuses what its products do not share", "[fast]") {
  const auto run = [](const char* activation, const char* dgrad, const char* wgrad) {
    OneLayer layer(masks("", activation, dgrad, wgrad), std::make_unique<net::Lstm>(8, 8), {5, 8});
    net::Op& lstm = layer.op();
    for (net::Parameter& parameter : lstm.parameters())
      parameter.value = noise(parameter.value.shape, 1);
    const net::Tensor x = noise({4, 5, 8}, 2);
    const std::vector<const net::Tensor*> inputs = {&x};
    const std::vector<net::Shape> shapes = {x.shape};
    net::Tensor y(lstm.output_shape(shapes)), context;
    const net::OpCall call{.layer = "layer",
                           .numerics = layer.in_training(3),
                           .phase = net::Phase::training,
                           .context = &context,
                           .kept = &context};
    lstm.forward(call, inputs, y);
    const net::Tensor g = noise(y.shape, 3);
    std::vector<net::Tensor> grad_inputs{net::Tensor(x.shape)}, grad_parameters;
    for (const net::Parameter& parameter : lstm.parameters())
      grad_parameters.emplace_back(parameter.value.shape);
    lstm.backward(call, {inputs, &y, g, grad_inputs, grad_parameters, true});
  };
  CHECK_THROWS_WITH(run("random(2:4)", "", ""), Contains("time step by time step"));
  CHECK_THROWS_WITH(run("", "stochastic(0.5,history=2)", ""), Contains("several times in a step"));
  CHECK_THROWS_WITH(run("", "", "greedy(2:4)"), Contains("leaves out rows"));
  CHECK_NOTHROW(run("", "greedy(2:4)", ""));
  CHECK_NOTHROW(run("greedy(2:4)", "", ""));
}

TEST_CASE("masked operands: workers that share a step are named where they cannot", "[fast]") {
  const auto run = [](const std::string& roles, std::int64_t part) {
    OneLayer layer(roles, std::make_unique<net::Linear>(8, 4, false), {8});
    struct OfWorker final : net::Forwarding {
      using Forwarding::Forwarding;
      void product(const net::Step&, const net::Product& p) override { inner().product(step, p); }
      net::Step step{net::Phase::training};
    } numerics(layer.numerics());
    numerics.step.part = part;
    run_op(layer.op(), {4, 8}, numerics);
  };
  for (const std::string& roles :
       {masks("", "random(2:4)", "", ""), masks("", "", "stochastic(0.5,history=2)", "")}) {
    INFO(roles);
    CHECK_NOTHROW(run(roles, 0));
    CHECK_THROWS_WITH(run(roles, 1), Contains("several workers or micro-batches share a step"));
  }
  CHECK_NOTHROW(run(masks("greedy(2:4)", "greedy(2:4)", "stochastic(0.5)", "mvue(1:2)"), 1));
}

TEST_CASE("masked operands: draws change with the step, the weights' do not", "[fast]") {
  const auto sources = [](std::int64_t step) {
    Reader reader(masks("random(2:4)", "random(2:4)", "", "mvue(1:2)"), net::Linear(16, 8, false),
                  {8, 16});
    run_op(reader.layer.op(), {8, 16}, reader.layer.in_training(step));
    return reader.sources;
  };
  auto first = sources(0), second = sources(1);
  CHECK(first.at(kFprop) == second.at(kFprop));
  CHECK(first.at(kForward) != second.at(kForward));
  CHECK(first.at(kLeft) != second.at(kLeft));
}

TEST_CASE("masked operands: in inference a sample does not see its neighbours", "[fast]") {
  const net::Tensor x = noise({6, 16}, 4), w = noise({8, 16}, 5);
  const unit::Gather b = unit::Gather::matrix(8, 16);
  const auto results = [&](const char* mask, std::int64_t at_once) {
    OneLayer layer(masks("", mask, "", ""), std::make_unique<net::Linear>(16, 8), {16});
    std::vector<float> all;
    for (std::int64_t first = 0; first < 6; first += at_once) {
      net::Tensor part({at_once, 16}), d({at_once, 8});
      std::copy_n(x.data.begin() + first * 16, part.size(), part.data.begin());
      const unit::Gather a = unit::Gather::matrix(at_once, 16);
      const std::vector<std::int64_t> samples = {first};
      layer.numerics().product({net::Phase::inference, 0, &samples},
                               {"layer",
                                GemmKind::fprop,
                                at_once,
                                8,
                                16,
                                {&part, &a, Role::activation, {.width = 16}},
                                {&w, &b, Role::weight, {.width = 16}},
                                d.data.data(),
                                {.width = 8}});
      all.insert(all.end(), d.data.begin(), d.data.end());
    }
    return all;
  };
  for (const char* mask :
       {"greedy(2:4)", "random(2:4)", "mvue(1:2)", "stochastic(0.5)", "unstructured(0.5)"}) {
    INFO(mask);
    const std::vector<float> whole = results(mask, 6);
    CHECK(results(mask, 1) == whole);
    CHECK(results(mask, 3) == whole);
  }
}

TEST_CASE("masked operands: a tail is refused with the mask and its length", "[fast]") {
  CHECK_THROWS_WITH(
      Reader(masks("greedy(2:4)", "", "", ""), net::Linear(6, 8, false), {4, 6}),
      Contains("r: roles.weight.mask: layer layer: mask greedy(2:4)") && Contains("found 6"));
}

}  // namespace mask_test
