// The network of a sweep with its trained weights: how it is loaded, and what identifies it.
#pragma once
#include <optional>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/train/run_state.hpp"
#include "experiments/engine/row.hpp"
#include "formats/storage/json.hpp"

namespace numemu::policies {
class BoundRecipe;
class Recipe;
}  // namespace numemu::policies

namespace numemu::experiments {

/// Where the program finds what it ships and keeps what it generates.
struct Folders {
  std::string data;   ///< shipped checkpoints and sweeps
  std::string cache;  ///< generated data sets, and baselines in float32
};

/// A network with its trained weights.
struct TrainedNet {
  net::Graph graph;
  std::string path;    ///< of the checkpoint
  std::string digest;  ///< first 16 hexadecimal digits of the SHA-256 of its parameters' bits
  /// SHA-256 of the graph that an .onnx file gave (net::graph_bytes); empty where a name gives it.
  std::string source = {};
  /// The network before tuning or fine-tuning, where the checkpoint has it: the float32 baseline.
  std::optional<net::Graph> before = {};
};

/// `name` is a reference network (then the checkpoint shipped for that data set is used), a
/// .safetensors file written by `numemu train`, NAME=FILE with the weights of a reference network
/// as safetensors or npz, or an .onnx file. Throws Error that explains how to train one if none is
/// shipped.
TrainedNet load_trained_net(const std::string& name, const net::Dataset&, const Folders&);

/// The network whose accuracy in float32 points are compared with.
const net::Graph& baseline_graph(const TrainedNet&);

/// The data set with the targets of the network's outputs, in their order.
net::Dataset at_outputs_of(const net::Graph&, const net::Dataset&);

/// load_trained_net(), with the data set as at_outputs_of() gives it.
TrainedNet load_with_data(const std::string& name, net::Dataset&, const Folders&);

/// Folds batch normalisation into the weights before it (emu/net/fold_batch_norm.hpp).
void fold_batch_norm(TrainedNet&);

NetworkIdentity identity_of(const TrainedNet&);
/// Its members by name.
net::RunIdentity run_identity(const TrainedNet&);
/// Adds it to the point of a trial.
void identify(Json& point, const TrainedNet&);

/// The recipe on a trained network: with the ranges of its checkpoint, unless the recipe has some
/// itself. `where`, the recipe's file, starts messages.
policies::BoundRecipe bound_recipe(const policies::Recipe&, const TrainedNet&,
                                   const std::string& where);

}  // namespace numemu::experiments
