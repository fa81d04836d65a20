// The ReLUs that can have a predictor, in the reference networks and where maps are read twice.
#include "policies/zap/sites.hpp"

#include <memory>

#include "emu/net/build/builder.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/binary.hpp"
#include "tests/catch.hpp"

namespace sites_test {

using namespace numemu;
using namespace numemu::policies;

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

}  // namespace sites_test
