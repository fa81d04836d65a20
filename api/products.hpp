// The products of a network of another framework under a recipe: the operators and hooks of
// numemu's own networks, so that the same operands give the same bits.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/recipes.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/conv.hpp"
#include "experiments/engine/row.hpp"
#include "experiments/predict/layer_powers.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::api {

using net::Graph, net::Tensor;

/// A layer of the other framework that multiplies. Its bias is that framework's own.
struct ForeignLayer {
  enum class Kind : std::uint8_t { linear, conv, matmul } kind = Kind::linear;
  std::string name;            ///< that recipes match
  Tensor weight = {};          ///< of a linear or conv layer, as the products get it
  net::ConvOptions conv = {};  ///< of a conv; its channels and kernels are those of the weight
  /// Of a matmul: key where a softmax reads its result, value where its left operand comes from
  /// one, else activation.
  net::Role second = net::Role::activation;
  bool transpose_b = false;  ///< of a matmul: its right operand is [.., n, k]
  /// The shapes of the operands of all its products in one pass; `right` of a matmul alone.
  std::vector<net::Shape> left = {}, right = {};
};

/// Which numerics compute a product.
enum class ProductMode : std::uint8_t {
  reference,  ///< float32 of unit f32.sequential; what recipes are calibrated on and compared with
  inference,  ///< the frozen recipe: weights quantized once, static scales
  training,   ///< the recipe as training uses it
};

/// One product of a pass.
struct ProductCall {
  std::size_t layer = 0;  ///< its place among the layers
  ProductMode mode = ProductMode::inference;
  std::int64_t step = 0;          ///< of training
  std::int64_t first_sample = 0;  ///< of inference: the number of the batch's first sample
  /// Which of so many products of the layer in a pass it is.
  std::int64_t repetition = 0, repetitions = 1;
};

/// The gradients of both operands; empty where they were not asked for.
struct ProductGradients {
  Tensor left, right;
};

/// Products by layer. Operands may be memory of the caller (Tensor::borrowed()), which is read
/// where it lies; only the weight of a frozen layer is kept, to find out whether it changed. The
/// layers are one network to the recipe: it is bound to all of them, in their order. Several
/// threads may call; one product is computed at a time, by all threads of numemu.
///
/// Operands: linear x [batch, .., in] and weight [out, in]; conv x [batch, .., in] with channels
/// last and weight [out, kernel.., in / groups]; matmul a [.., m, k] and b [.., k, n]
/// (net::MatMul).
class Products {
 public:
  /// The shapes of the layers are those of a pass over `samples`. Throws Error where a pattern
  /// matches no layer, where the recipe does not fit a layer, and for a recipe with stages; `where`
  /// starts the message.
  Products(const Recipe&, std::vector<ForeignLayer>, std::int64_t samples,
           const std::string& where = "recipe");
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  const std::vector<ForeignLayer>& layers() const { return layers_; }
  const Recipe& recipe() const { return bound_.recipe(); }
  /// Keys and roles of the recipe that speak of operators other than products, which the other
  /// framework computes in float32.
  std::vector<std::string> ignored() const;

  /// Samples that static scales are calibrated on, of so many; 0 without such scales.
  std::int64_t calibration_samples(std::int64_t available) const;
  /// Freezes the numerics of inference, as `infer` does. `run` makes the other framework compute
  /// samples [first, first + count) in mode reference; nothing is run where no scale needs it.
  /// Throws Error where samples differ in shape from those that the layers were made with.
  void freeze(std::int64_t available,
              const std::function<void(std::int64_t first, std::int64_t count)>& run);

  /// Begins and ends a training step; products of training belong between them.
  void begin_step(std::int64_t step);
  void end_step(std::int64_t step);

  /// The product of the layer. Throws Error naming the layer where operands do not fit it, and for
  /// a recipe that does not serve the mode.
  Tensor forward(const ProductCall&, const Tensor& left, const Tensor& right);
  /// The gradients of its operands along that of its result, in the order of `train`: right, left.
  /// Under the numerics of training in both other modes but reference.
  ProductGradients backward(const ProductCall&, const Tensor& left, const Tensor& right,
                            const Tensor& gradient, bool want_left, bool want_right);

  /// Outputs of a layer (with its bias) on the same samples [batch, ..] in mode reference and under
  /// the recipe, for rows().
  void compare(std::size_t layer, const Tensor& clean, const Tensor& quantized);
  /// Forgets what was compared and counted.
  void reset();
  /// By layer as `infer` shows them: the SQNR of what was compared, shares of operands that
  /// overflowed, underflowed or were invalid, and of saturated results, in inference since reset().
  std::vector<experiments::RowLayer> rows() const;

  /// The state of training that checkpoints hold: histories of delayed scales.
  net::NamedState state() const;
  void load_state(const net::NamedState&);

 private:
  struct Place {
    std::size_t node = 0;   ///< of the graph
    std::size_t input = 0;  ///< of the graph: its left operand; the right one of a matmul follows
    bool fresh = true;      ///< the numerics of inference have not seen its weight
  };

  net::Op& op(std::size_t layer) { return *graph_.nodes[places_.at(layer).node].op; }
  net::Numerics& numerics(ProductMode, bool backward);
  void place(const ProductCall&, const Tensor& weight);
  std::vector<Tensor> take_records(std::int64_t count);

  std::vector<ForeignLayer> layers_;
  std::vector<Place> places_;
  Graph graph_;
  policies::BoundRecipe bound_;
  net::Numerics reference_;
  policies::RecipeNumerics inference_, training_;
  bool frozen_ = false, trainable_ = false, recording_ = false;
  std::vector<std::vector<float>> records_;                ///< by input of the graph
  std::vector<std::vector<experiments::Power>> compared_;  ///< by layer, of samples
  mutable std::mutex mutex_;
};

}  // namespace numemu::api
