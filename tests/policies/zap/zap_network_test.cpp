// The predictors of a network: recorded maps, training layer by layer, files and what they refuse.
#include "policies/zap/zap_network.hpp"

#include <memory>

#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/binary.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/zap/small_zap.hpp"

namespace zap_network_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using testing::recorded_maps;
using testing::small_graph;
using testing::small_samples;

TEST_CASE("recorded maps are what the layer gives, batch by batch", "[fast]") {
  const net::Graph graph = small_graph();
  const net::Tensor maps = recorded_maps(graph, "relu1", 40, small_samples);
  CHECK(maps.shape == net::Shape{40, 8, 8, 4});
  net::Numerics float32;
  net::Tensor expected;
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    if (node.name == "relu1") expected = output;
  };
  net::forward(graph, small_samples(32, 8), float32, {}, &observe);
  CHECK(std::equal(expected.data.begin(), expected.data.end(), maps.data.begin() + 32 * 256));
  ZapNetwork strange = make_zap_network(zap_sites(graph, true), 5, 4);
  strange.layers[0].site.layer = "nobody";
  CHECK_THAT(message_of([&] { for_each_map(strange, graph, 4, small_samples, {}); }),
             Catch::Contains("expected a layer 'nobody'"));
}

TEST_CASE("layers are recorded together as each by itself, in their order", "[fast]") {
  const net::Graph graph = small_graph();
  const ZapNetwork network = make_zap_network(zap_sites(graph, true), 5, 4);
  // All at once, two (of 3 and 4 channels) and one, one at a time.
  for (const std::int64_t most : {kRecordedElements, std::int64_t{40 * 64 * 7}, std::int64_t{1}}) {
    std::vector<std::size_t> order;
    std::int64_t batches = 0;
    const auto samples = [&](std::int64_t first, std::int64_t count) {
      ++batches;
      return small_samples(first, count);
    };
    const auto check = [&](std::size_t l, const net::Tensor& maps) {
      order.push_back(l);
      CHECK(maps.data ==
            recorded_maps(graph, network.layers[l].site.layer, 40, small_samples).data);
    };
    for_each_map(network, graph, 40, samples, check, most);
    CHECK(order == std::vector<std::size_t>{0, 1, 2});
    CHECK(batches == 2 * (most == 1 ? 3 : most == kRecordedElements ? 1 : 2));
  }
}

TEST_CASE("layers are trained each by itself", "[fast]") {
  const net::Graph graph = small_graph();
  const ZapTraining training{.epochs = 1, .batch = 16, .seed = 3};
  ZapNetwork all = make_zap_network(zap_sites(graph, false), 5, 4);
  REQUIRE(all.layers.size() == 2);
  const auto losses = train_zap_network(all, graph, 32, small_samples, training);
  REQUIRE(losses.size() == 2);
  CHECK(losses[1].size() == 1);
  ZapNetwork second = make_zap_network({all.layers[1].site}, 5, 4);
  CHECK(train_zap_network(second, graph, 32, small_samples, training)[0] == losses[1]);
  CHECK(all.find("relu2") == &all.layers[1]);
  CHECK(all.find("relu0") == nullptr);
  // Two layers of one shape begin with weights of their own.
  CHECK(all.layers[0].predictor.graph().parameters()[0]->value.data !=
        all.layers[1].predictor.graph().parameters()[0]->value.data);
  CHECK_THAT(message_of([] { make_zap_network({}, 5, 0); }),
             Catch::Contains("a ReLU behind a convolution"));
}

TEST_CASE("a file gives the same predictors back", "[fast]") {
  const TemporaryFolder folder;
  const net::Graph graph = small_graph();
  ZapNetwork network = make_zap_network(zap_sites(graph, false), 6, 4);
  train_zap_network(network, graph, 16, small_samples, {.epochs = 1, .batch = 8});
  network.layers[0].threshold = 0.1f;
  network.layers[1].threshold = -0.3f;
  const std::string path = folder / "zap.safetensors";
  save_zap_network(path, network);
  const ZapNetwork loaded = load_zap_network(path, graph);
  REQUIRE(loaded.layers.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const ZapLayer &was = network.layers[i], &is = loaded.layers[i];
    CHECK(is.site.layer == was.site.layer);
    CHECK(is.threshold == was.threshold);
    CHECK(is.predictor.mask().computed == was.predictor.mask().computed);
    const net::Tensor x = testing::correlated_maps(2, 8, 8, 4, 9);
    CHECK(is.predictor.predict(x).data == was.predictor.predict(x).data);
  }
}

TEST_CASE("a layer's result without what is predicted zero; others stay", "[fast]") {
  ZapNetwork network = make_zap_network(zap_sites(small_graph(), false), 5, 4);
  network.layers[1].threshold = 0.2f;
  const net::Tensor x = testing::correlated_maps(3, 8, 8, 4, 9);
  net::Tensor skipped = x, expected = x, other = x;
  network.skip("relu2", skipped);
  const ZapPredictor& predictor = network.layers[1].predictor;
  skip_zeros(predictor.mask(), predictor.predict(x), 0.2f, expected);
  CHECK(skipped.data == expected.data);
  CHECK(skipped.data != x.data);
  network.skip("relu0", other);
  CHECK(other.data == x.data);
}

TEST_CASE("files that do not fit are refused by name", "[fast]") {
  const TemporaryFolder folder;
  const net::Graph graph = small_graph();
  const std::string path = folder / "zap.safetensors";
  const auto refused = [&](const net::Checkpoint& checkpoint) {
    net::write_safetensors(path, checkpoint);
    const std::string message = message_of([&] { load_zap_network(path, graph); });
    CHECK_THAT(message, Catch::StartsWith(path));
    return message;
  };
  save_zap_network(path, make_zap_network(zap_sites(graph, false), 6, 4));
  const net::Checkpoint good = net::read_safetensors(path);
  REQUIRE(good.metadata.size() == 2);
  REQUIRE(good.metadata[0].second == "mask 6, threshold 0");

  net::Checkpoint bad = good;
  bad.metadata.clear();
  CHECK_THAT(refused(bad), Catch::Contains("zap.LAYER"));
  bad = good;
  bad.metadata[0].first = "zap.relu9";
  CHECK_THAT(refused(bad), Catch::Contains("'relu9' is not a ReLU"));
  for (const char* text : {"", "mask 6", "mask 6, threshold x", "mask 6, threshold 0 ", "mask x"}) {
    bad = good;
    bad.metadata[1].second = text;
    CHECK_THAT(refused(bad), Catch::Contains("expected 'mask TYPE, threshold NUMBER'"));
  }
  bad = good;
  bad.tensors.pop_back();
  refused(bad);
  bad = good;
  bad.tensors.push_back({"stray", net::Tensor(net::Shape{1})});
  CHECK_THAT(refused(bad), Catch::Contains("found others"));
}

namespace {

std::vector<std::string> layers_of(const std::vector<ZapSite>& sites) {
  std::vector<std::string> layers;
  for (const ZapSite& site : sites) layers.push_back(site.layer);
  return layers;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("lenet: the ReLU behind conv2, that behind conv1 if asked", "[fast]") {
  const net::Graph graph = net::build_net("lenet", {28, 28, 1}, 10);
  CHECK(layers_of(zap_sites(graph, false)) == Names{"relu2"});
  const std::vector<ZapSite> sites = zap_sites(graph, true);
  CHECK(layers_of(sites) == Names{"relu1", "relu2"});
  CHECK(sites[1].map == net::Shape{10, 10, 16});
  CHECK(sites[1].convolutions == Names{"conv2"});
  CHECK(sites[1].depth == 6 * 25);
  CHECK(sites[1].activations() == 1600);
  CHECK(sites[1].macs() == 240000);
  CHECK(convolution_macs(graph) == 240000 + 28 * 28 * 6 * 25);
}

TEST_CASE("vgg-small: every ReLU but the first, through batch normalisation", "[fast]") {
  const net::Graph graph = net::build_net("vgg-small", {32, 32, 3}, 10);
  const std::vector<ZapSite> sites = zap_sites(graph, false);
  CHECK(layers_of(sites) == Names{"relu2", "relu3", "relu4", "relu5", "relu6"});
  CHECK(sites[2].depth == 64 * 9);
  std::int64_t macs = 32 * 32 * 32 * 27;
  for (const ZapSite& site : sites) macs += site.macs();
  CHECK(convolution_macs(graph) == macs);
}

TEST_CASE("resnet20: both of a block, the second behind the addition", "[fast]") {
  const net::Graph graph = net::build_net("resnet20", {32, 32, 3}, 10);
  const std::vector<ZapSite> sites = zap_sites(graph, false);
  REQUIRE(sites.size() == 18);
  CHECK(sites[0].layer == "stage1.block1.relu1");
  CHECK(sites[0].convolutions == Names{"stage1.block1.conv1"});
  CHECK(sites[1].layer == "stage1.block1.relu2");
  CHECK(sites[1].convolutions == Names{"stage1.block1.conv2"});
  CHECK(zap_sites(graph, true).size() == 19);
}

TEST_CASE("networks without such a ReLU have no site", "[fast]") {
  CHECK(zap_sites(net::build_net("mlp", {28, 28, 1}, 10), true).empty());
  CHECK(convolution_macs(net::build_net("mlp", {28, 28, 1}, 10)) == 0);
}

TEST_CASE("a convolution that something else reads too must be computed", "[fast]") {
  const auto sites = [](bool read_again) {
    net::Builder net("n", {8, 8, 3}, 2);
    net.conv3x3("conv0", 4).relu("relu0").conv3x3("conv1", 4).batch_norm("bn1");
    const int before = net.value();
    net.relu("relu1");
    if (read_again) {
      const int after = net.value();
      net.node("join", std::make_unique<net::Binary>("add"), {before, after});
    }
    return layers_of(zap_sites(net.take(), false));
  };
  CHECK(sites(false) == Names{"relu1"});
  CHECK(sites(true).empty());
}

TEST_CASE("two convolutions that are added cost both", "[fast]") {
  net::Builder net("n", {8, 8, 3}, 2);
  net.conv3x3("conv0", 4).relu("relu0");
  const int from = net.value();
  const int left = net.conv3x3("conv1", 4).batch_norm("bn1").value();
  const int right = net.at(from).conv1x1("project", 4).batch_norm("bn2").value();
  net.node("add", std::make_unique<net::Binary>("add"), {left, right}).relu("relu1");
  const std::vector<ZapSite> sites = zap_sites(net.take(), false);
  REQUIRE(sites.size() == 1);
  CHECK(sites[0].convolutions == Names{"conv1", "project"});
  CHECK(sites[0].depth == 4 * 9 + 4);
}

}  // namespace zap_network_test
