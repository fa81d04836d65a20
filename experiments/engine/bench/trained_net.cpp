#include "experiments/engine/bench/trained_net.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "emu/net/data/view.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::experiments {

TrainedNet load_trained_net(const std::string& name, const net::Dataset& dataset,
                            const Folders& folders) {
  const auto described = [](net::LoadedNetwork network, const std::string& path) {
    TrainedNet trained{std::move(network.graph), path, ""};
    trained.before = std::move(network.before);
    if (!network.onnx.empty()) trained.source = sha256_hex(network.onnx);
    trained.digest = net::digest_of(trained.graph);
    return trained;
  };
  if (net::names_onnx_file(name)) return described(net::load_network(name, dataset), name);
  auto [architecture, path] = net::name_and_file(name);
  if (!net::names_weights_file(path)) {
    const std::vector<std::string> known = net::net_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error("expected a network or a .safetensors, .gguf, .npz or .onnx file: " +
                  unknown_name("network", name, known));
    }
    path = fmt::format("{}/{}-{}.safetensors", folders.data, name, dataset.name());
    if (!std::filesystem::exists(path)) {
      throw Error(
          fmt::format("numemu ships no trained {} for {}; train one with `numemu train --net {} "
                      "--data ... --out DIR` and give its .safetensors file as the network",
                      name, dataset.name(), name));
    }
    architecture = name;
  }
  const net::Checkpoint checkpoint = net::read_weights(path);
  if (architecture.empty()) return described(net::network_of(checkpoint, path, dataset), path);
  net::LoadedNetwork network = net::load_network(architecture, dataset);
  net::load_parameters(network.graph, checkpoint, path);
  return described(std::move(network), path);
}

const net::Graph& baseline_graph(const TrainedNet& trained) {
  return trained.before ? *trained.before : trained.graph;
}

net::Dataset at_outputs_of(const net::Graph& graph, const net::Dataset& dataset) {
  return net::at_outputs(dataset, net::output_shapes(graph));
}

TrainedNet load_with_data(const std::string& name, net::Dataset& dataset, const Folders& folders) {
  TrainedNet trained = load_trained_net(name, dataset, folders);
  dataset = at_outputs_of(trained.graph, dataset);
  return trained;
}

void fold_batch_norm(TrainedNet& trained) {
  net::fold_batch_norm(trained.graph);
  if (trained.before) net::fold_batch_norm(*trained.before);
  trained.digest = net::digest_of(trained.graph);
}

namespace {

constexpr std::size_t kDigits = 16;

}  // namespace

NetworkIdentity identity_of(const TrainedNet& trained) {
  const std::int64_t codes = net::coded_weights_of(trained.path);
  return {.net = trained.graph.name,
          .weights = trained.digest,
          // Of a reference network the name says all.
          .graph = trained.source.substr(0, kDigits),
          .tuned_from = trained.before ? net::digest_of(*trained.before) : "",
          .ranges = policies::digest_of(policies::checkpoint_ranges(trained.path)),
          .weights_as_codes = codes > 0 ? std::to_string(codes) : "",
          .trained = policies::trained_without_before(trained.path) ? "under a recipe" : ""};
}

net::RunIdentity run_identity(const TrainedNet& trained) {
  net::RunIdentity identity;
  const NetworkIdentity of = identity_of(trained);
  NetworkIdentity::fields(of, [&](const char* key, const std::string& value, unsigned) {
    if (!value.empty()) identity.emplace_back(key, value);
  });
  return identity;
}

void identify(Json& point, const TrainedNet& trained) {
  point.update(json_of(identity_of(trained)));
}

policies::BoundRecipe bound_recipe(const policies::Recipe& recipe, const TrainedNet& trained,
                                   const std::string& where) {
  return {policies::with_checkpoint_ranges(recipe, trained.path, where), trained.graph, where};
}

}  // namespace numemu::experiments
