// The files of infer: its model, the arrays that it is given, and its outputs.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/networks.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "emu/net/model/onnx/quantized_file.hpp"
#include "policies/policy.hpp"

namespace numemu::api {

/// Before anything is read or computed: throws Error for files that cannot be written, for one that
/// is read, and for one named twice unless it is a .safetensors file, which takes several outputs.
void require_paths(const InferRequest&);

/// An array as its file has it, as float32, with samples along its first axis.
struct NamedArray {
  std::string name, path;  ///< of the input ("": the only one), and of the file
  Tensor tensor;
  bool bytes = false;  ///< uint8: numbers from 0 to 255
};
/// Those in memory, as arrays of a file.
std::vector<NamedArray> named_arrays(std::span<const net::NamedTensor>);
/// Arrays of "[name=]x.npy"; arranged() normalises those of uint8, or refuses them where the model
/// takes real numbers.
std::vector<NamedArray> read_arrays(const std::vector<std::string>& given, std::string_view option,
                                    const Context&);

/// The network of an .onnx file, of a checkpoint or of a shipped one; the arrays give what extents
/// the file leaves open. Where the arrays have no common batch, or an operator mixes samples, all
/// of them are one sample; a note says why.
net::ImportedModel load_model(const std::string& name, const std::vector<NamedArray>& inputs,
                              const Folders&);
/// load_model() of the request's model, batch normalisation folded where it asks for that.
net::ImportedModel opened_model(const InferRequest&, const std::vector<NamedArray>&,
                                const Folders&);
/// The ONNX file of a model that load_model() gave, imported as it was, with its own weights;
/// nothing for a network of this program's own.
std::optional<net::ImportedFile> source_of(const std::string& name,
                                           const std::vector<NamedArray>& inputs,
                                           const net::ImportedModel&);

/// The axis `from` becomes axis `to`; the others keep their order. Images: 1 to 3 puts channels
/// last.
Tensor with_axis_moved(const Tensor& x, int from, int to);

/// The arrays in the order and layout of the graph's inputs.
std::vector<Tensor> arranged(const net::ImportedModel&, std::vector<NamedArray>,
                             std::string_view option, const InferRequest&);

/// Samples [first, first + count) of each.
std::vector<Tensor> samples_of(const std::vector<Tensor>& all, std::int64_t first,
                               std::int64_t count);

/// The samples that may calibrate static scales.
struct CalibrationSamples {
  std::string from;  ///< "x.npy", "glyphs"
  std::int64_t available = 0;
  std::string digest;  ///< 16 hexadecimal digits; "" for the arrays of --in
  policies::CalibrationBatch batch;
};
/// Arrays like those of the inputs, or the training samples that a data set keeps for calibration.
CalibrationSamples calibration_samples(const InferRequest&, const net::ImportedModel&,
                                       const Context&);

/// Samples without NaN or infinite numbers, ascending, and those with. Infinite numbers of an input
/// that is a mask of attention leave no sample out: all its numbers are 0 or -inf, or all its
/// samples have infinite ones.
struct FiniteSamples {
  std::vector<std::int64_t> kept, left_out;
};
FiniteSamples finite_samples(const policies::CalibrationBatch&, std::int64_t count);
/// The samples of these numbers, in one batch; `ids` must not be empty.
std::vector<Tensor> samples_of(const policies::CalibrationBatch&,
                               std::span<const std::int64_t> ids);

/// The beginning of the SHA-256 of the float32 elements.
std::string digest_of(const Tensor&);

/// The file of each output that is kept, "" where it has none; without a name that of the first.
std::map<std::string, std::string> destinations(const InferRequest&, const net::ImportedModel&);

/// A shape of the graph as ONNX has it.
net::Shape in_onnx_order(const net::OnnxPort&, const net::Shape&);

/// The memory of what stays beside the passes: the arrays as read and in the graph's layout, and
/// the files' outputs for all samples, with one batch of them on its way.
std::deque<net::MemoryClaim> claim_memory(const net::ImportedModel&,
                                          const std::vector<Tensor>& inputs, std::int64_t batch,
                                          const std::map<std::string, std::string>& files);

void write_results(const std::map<std::string, std::string>& files,
                   const std::map<std::string, Tensor>& results);

}  // namespace numemu::api
