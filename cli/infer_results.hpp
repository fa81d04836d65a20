// The outputs of numemu infer: files, memory and warnings.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/memory.hpp"
#include "emu/net/model/onnx_import.hpp"
#include "experiments/engine/not_finite.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// "name=file" or "file" (then the name is "").
std::pair<std::string, std::string> named(const std::string& text);

/// What `infer` reads, beside the model "name=file" or "file" each.
struct InferInputs {
  std::vector<std::string> arrays, calibrate_on;
  std::string model, recipe;
};

/// Before anything is read or computed: throws Error for files that cannot be written, for one that
/// is read, and for one named twice unless it is a .safetensors file, which takes several outputs.
void require_paths(const std::vector<std::string>& out, const InferInputs&);

/// The file of each output that has one; without a name that of the first.
std::map<std::string, std::string> destinations(const std::vector<std::string>& out,
                                                const net::ImportedModel&);

/// A shape of the graph as ONNX has it.
net::Shape in_onnx_order(const net::OnnxPort&, const net::Shape&);

/// The memory of what stays beside the passes: the arrays as read and in the graph's layout, and
/// the files' outputs for all samples, with one batch of them on its way.
std::deque<net::MemoryClaim> claim_memory(const net::ImportedModel&,
                                          const std::vector<net::Tensor>& inputs,
                                          std::int64_t batch,
                                          const std::map<std::string, std::string>& files);

/// NaN in the inputs, and in how many samples they are.
struct NanCount {
  std::int64_t elements = 0, samples = 0;
  /// Samples with NaN whose outputs have none: a format without NaN converted it to a number, which
  /// the outputs do not show.
  std::int64_t hidden = 0;
};
NanCount count_nan(const std::vector<net::Tensor>& inputs,
                   const std::map<std::string, net::Tensor>& results);

/// How many of the first samples notes and noise are about: as many as 2^24 elements hold, and half
/// of the memory left; `elements` gets those of one sample.
std::int64_t reference_samples(const net::Graph&, const std::vector<net::Tensor>& inputs,
                               std::int64_t* elements);

/// {"samples", "samples_not_finite", "outputs", "layers"} of an output of all samples, as
/// NotFinite::json with the samples that have NaN or infinite numbers; null where all is finite.
Json not_finite_json(const experiments::NotFinite&, const net::Tensor& output);
/// "3 of 5 samples of y are NaN or infinite (30 of 50 numbers)", and in which layer they first
/// arise.
std::vector<std::string> not_finite_sentences(const std::string& output, const Json& not_finite);

void write_results(const std::map<std::string, std::string>& files,
                   const std::map<std::string, net::Tensor>& results);

}  // namespace numemu::cli
