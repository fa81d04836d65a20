// The model of numemu infer and the arrays that it is given.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/model/onnx_import.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/recipe_numerics.hpp"

namespace numemu::cli {

struct NamedArray {
  std::string name, path;  ///< of the input ("": the only one), and of the file
  net::Tensor tensor;      ///< as the file has it
  bool bytes = false;      ///< uint8, to be normalised: numbers from 0 to 255
};

/// "normalize=imagenet" or "mean=..,deviation=..", options of data sets; empty for none.
using PixelOptions = std::string;

/// Arrays of "[name=]x.npy", as float32, with samples along their first axes; of uint8 where there
/// are options for them, which arranged() applies.
std::vector<NamedArray> read_arrays(const std::vector<std::string>& given, std::string_view option,
                                    bool quiet, const PixelOptions& pixels = {});

/// The network of an .onnx file, of a checkpoint or of a shipped one; the arrays give what extents
/// the file leaves open.
net::ImportedModel load_model(const std::string& name, const std::vector<NamedArray>& inputs);

/// The axis `from` becomes axis `to`; the others keep their order. Images: 1 to 3 puts channels
/// last.
net::Tensor with_axis_moved(const net::Tensor& x, int from, int to);

/// The arrays in the order and layout of the graph's inputs.
std::vector<net::Tensor> arranged(const net::ImportedModel&, std::vector<NamedArray> arrays,
                                  std::string_view option, const PixelOptions& pixels = {});

/// Samples [first, first + count) of each.
std::vector<net::Tensor> samples_of(const std::vector<net::Tensor>& all, std::int64_t first,
                                    std::int64_t count);

/// The samples that may calibrate static scales.
struct CalibrationSamples {
  std::string from;  ///< "x.npy", "glyphs"
  std::int64_t available = 0;
  std::string digest;  ///< 16 hexadecimal digits; "" for the arrays of --in
  policies::CalibrationBatch batch;
};

/// Arrays like those of the inputs, or the training samples that a data set keeps for calibration.
CalibrationSamples calibration_samples(const std::vector<std::string>& given,
                                       const net::ImportedModel&, bool quiet,
                                       const PixelOptions& pixels = {});

/// Samples without NaN or infinite numbers, ascending, and those with. Infinite numbers of an input
/// that is a mask of attention leave no sample out: all its numbers are 0 or -inf, or all its
/// samples have infinite ones.
struct FiniteSamples {
  std::vector<std::int64_t> kept, left_out;
};
FiniteSamples finite_samples(const policies::CalibrationBatch&, std::int64_t count);
/// The samples of these numbers, in one batch; `ids` must not be empty.
std::vector<net::Tensor> samples_of(const policies::CalibrationBatch&,
                                    std::span<const std::int64_t> ids);

/// [{"name", "file", "shape", "digest"}] of arrays as read: the digest is the beginning of the
/// SHA-256 of their float32 elements.
Json arrays_json(const std::vector<NamedArray>&);
/// The same digest.
std::string digest_of(const net::Tensor&);

}  // namespace numemu::cli
