// Networks as PyTorch's exporter writes them, and what they compute, in float64 from the same
// weights.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::test {

using Ints = std::vector<std::int64_t>;

Tensor run_model(const ImportedModel& model, const std::vector<Tensor>& inputs);

/// The value of one output, which need not be the last.
Tensor output_of(const ImportedModel& model, std::size_t index, const std::vector<Tensor>& inputs);

Tensor tensor_of(Shape shape, std::vector<float> data);

/// Weights by name, in ONNX order: a function of the name and the shape.
class Weights {
 public:
  explicit Weights(ModelWriter& writer) : writer_(writer) {}
  /// Adds an initializer of multiples of 2^-16 in [offset - scale, offset + scale).
  std::string operator()(const std::string& name, const Ints& dims, float scale, float offset = 0);
  const Doubles& at(const std::string& name) const { return all_.at(name); }

 private:
  ModelWriter& writer_;
  std::map<std::string, Doubles> all_;
  std::uint32_t made_ = 0;
};

/// How exporters differ over one model.
struct GptStyle {
  bool split = true;       ///< one product for queries, keys and values, else three
  bool gemm = false;       ///< Gemm between reshapes to two axes, as for GPT-2's Conv1D
  bool masks_add = false;  ///< -inf added, else chosen by Where
  bool tanh_gelu = true;
  std::int64_t batch = -1;  ///< what the file gives
};

/// One block of GPT over 4 tokens of 11, width 8, two heads.
class GptBlock {
 public:
  static constexpr int kTokens = 4, kWidth = 8, kHeads = 2, kWords = 11, kHidden = 16;

  explicit GptBlock(const GptStyle& style);

  const ModelWriter& writer() const { return w_; }

  /// The logits [tokens, words] of one sample.
  Doubles reference(const std::vector<float>& tokens) const;

 private:
  const Doubles& at(const std::string& name) const { return weights_.at(name); }

  /// wpe(torch.arange(tokens.size(1)).unsqueeze(0)).
  std::string positions();

  std::string norm(const std::string& x, const std::string& name);

  /// x W + b; the exporter has turned the weight and lost its name.
  std::string dense(const std::string& x, const std::string& name, int in, int out);

  std::string heads(const std::string& x, const Ints& order);

  std::string attention(const std::string& x);

  /// bias[:, :, :4, :4] of a registered buffer of 8 x 8, or torch.triu(torch.full((4, 4), -inf),
  /// 1).
  std::string masked(const std::string& scores);

  std::string gelu(const std::string& x);

  static void add(Doubles& x, const Doubles& y);
  Doubles linear(const Doubles& x, const std::string& name, int in, int out) const;
  Doubles normed(const Doubles& x, const std::string& name) const;
  Doubles attended(const Doubles& x) const;

  GptStyle style_;
  ModelWriter w_;
  Weights weights_{w_};
};

/// A block of MobileNetV2 over images of 3 x 6 x 6: a strided stem, expansion, depthwise
/// convolution, projection, residual; then pooling and a classifier of 5.
class MobileBlock {
 public:
  static constexpr int kSize = 6, kIn = 3, kStem = 4, kWide = 8, kClasses = 5;

  explicit MobileBlock(std::int64_t batch = -1);

  const ModelWriter& writer() const { return w_; }

  /// The logits of one image [6, 6, 3], channels last.
  Doubles reference(const float* image) const;

 private:
  std::string clip(const std::string& x);
  /// `in` input channels of each group, padded to keep the size for stride 1.
  std::string conv(const std::string& x, const std::string& name, int out, int in, int kernel,
                   std::int64_t stride, std::int64_t groups);
  static Doubles clipped(Doubles x);
  Doubles convolved(const Doubles& x, int size, const std::string& name, int out, int in,
                    int kernel, int stride, int groups) const;

  ModelWriter w_;
  Weights weights_{w_};
};

}  // namespace numemu::net::test
