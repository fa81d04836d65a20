// Weights in whichever format a file holds them, and the parameters of a graph in a checkpoint:
// folded ones, and those before tuning, with which accuracy is compared.
#pragma once
#include <string>
#include <string_view>

#include "emu/net/graph.hpp"
#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// Reads safetensors (with `bytes`; codes times their scales), GGUF or .npz; the file's first bytes
/// decide which, not its name. Tensors that another program quantized
/// (formats/storage/packed/layouts.def) become numbers one at a time. Throws Error naming the file,
/// also where it is none of them or where its numbers exceed the memory budget.
Checkpoint read_weights(const std::string& path);

/// The tensors of an .npz archive (read_npz_tensors()).
Checkpoint read_npz(const std::string& path);

/// Copies tensors into the graph's parameters by name; missing, unknown or misshapen ones are an
/// Error naming the file.
void load_parameters(Graph&, const Checkpoint&, const std::string& path);
Checkpoint parameters_of(const Graph&);
/// Leaves one tensor of those of tied parameters (emu/net/tied.hpp), that of the trained one, and
/// says in the metadata, which it sorts, which follow it. load_checkpoint() ties them again.
void store_ties(Checkpoint&, const Graph&);

/// Identity of all parameters, names and bits: 16 hexadecimal digits.
std::string digest_of(const Graph&);

/// Whether a tensor of a checkpoint belongs to the network before tuning.
bool is_tuned_from(std::string_view tensor);
/// The parameter whose value a tensor of a checkpoint is, before tuning or after.
std::string name_in_graph(std::string_view tensor);

/// Adds the parameters of the network before tuning, which has the nodes of the tuned one.
void add_tuned_from(Checkpoint&, const Graph& before);

bool has_tuned_from(const Checkpoint&);
/// Gives the parameters before tuning to a graph with the nodes of the tuned network. Throws Error
/// naming `path` and the tensor where they do not fit.
void load_tuned_from(Graph&, const Checkpoint&, const std::string& path);

/// The value of a key of the metadata; "" without.
std::string metadata_of(const Checkpoint&, std::string_view key);

/// Says that the parameters are those of the folded graph (fold_batch_norm()).
void mark_folded(Checkpoint&);
bool is_folded(const Checkpoint&);
/// load_parameters() into the graph as it is built, which is folded first where the checkpoint says
/// so.
void load_checkpoint(Graph&, const Checkpoint&, const std::string& path);

}  // namespace numemu::net
