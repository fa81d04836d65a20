// A small untrained network with two sites, and samples for it.
#pragma once
#include "emu/net/build/builder.hpp"
#include "emu/net/graph.hpp"
#include "policies/zap/zap_network.hpp"
#include "tests/policies/zap/correlated_maps.hpp"

namespace numemu::testing {

inline net::Graph small_graph(bool norm = false) {
  net::Builder net("small", {8, 8, 2}, 3);
  net.conv3x3("conv0", 3).relu("relu0").conv3x3("conv1", 4);
  if (norm) net.batch_norm("bn1");
  net.relu("relu1").conv3x3("conv2", 4).relu("relu2").flatten("flatten").classifier("fc");
  net::Graph graph = net.take();
  net::initialize(graph, 1);
  return graph;
}

inline net::Tensor small_samples(std::int64_t first, std::int64_t count) {
  return correlated_maps(count, 8, 8, 2, static_cast<std::uint64_t>(100 + first));
}

/// What one ReLU of the graph gives in float32 for samples [0, samples).
inline net::Tensor recorded_maps(const net::Graph& graph, const std::string& layer,
                                 std::int64_t samples, const policies::ZapSamples& data) {
  policies::ZapNetwork network;
  for (const policies::ZapSite& site : policies::zap_sites(graph, true))
    if (site.layer == layer) network = policies::make_zap_network({site}, 5, 4);
  net::Tensor recorded;
  policies::for_each_map(network, graph, samples, data,
                         [&](std::size_t, net::Tensor maps) { recorded = std::move(maps); });
  return recorded;
}

}  // namespace numemu::testing
