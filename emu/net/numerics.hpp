// The interface of numerics: the hooks that a network calls. Every default computes in
// float32.
#pragma once
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/exchange.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/gather.hpp"

namespace numemu::net {

/// What a tensor is (roles.def). The sides of products have the first three.
enum class Role : std::uint8_t {
#define NUMEMU_ROLE(name, ...) name,
#include "emu/net/roles.def"
#undef NUMEMU_ROLE
};
inline constexpr std::size_t kRoleCount = 0
#define NUMEMU_ROLE(...) +1
#include "emu/net/roles.def"
#undef NUMEMU_ROLE
    ;
/// fprop: the forward product. dgrad: the gradient of its left operand (or the only one that is no
/// weight). wgrad: the gradient of its right operand, a weight, or the second of two activations.
enum class GemmKind : std::uint8_t { fprop, dgrad, wgrad };
enum class Phase : std::uint8_t { inference, training };

std::string_view to_string(Role);
std::string_view to_string(GemmKind);

/// Where the passes of simulated workers meet.
class Meeting {
 public:
  virtual ~Meeting() = default;
  /// The values of all workers that take part, in their order, once each has called with its own.
  virtual std::vector<std::vector<double>> gather(std::vector<double> own) = 0;
};

/// Where a run is when it calls a hook: the training or evaluation step, and the part of its batch.
struct Step {
  Phase phase = Phase::inference;
  std::int64_t index = 0;  ///< optimizer step, or batch of an evaluation
  const std::vector<std::int64_t>* samples =
      nullptr;                 ///< ids of the samples in the batch, may be null
  std::int64_t part = 0;       ///< number of the micro-batch among those of all simulated workers
  Meeting* meeting = nullptr;  ///< with the passes of the other workers, where rules need one

  /// Inference: random bits belong to samples, not to batches. 0 in training and without samples.
  std::int64_t first_sample() const {
    const bool known = phase == Phase::inference && samples != nullptr && !samples->empty();
    return known ? samples->front() : 0;
  }
};

/// An epoch that ended, with its validation.
struct Epoch {
  std::int64_t index = 0;
  double train_loss = 0, validation_loss = 0;  ///< NaN without a validation split
};

/// A tensor as a stack of matrices: seen as [outer, rows, inner, width] it holds outer x inner
/// matrices of rows x width, number o * inner + i. Grouped convolutions and attention heads are the
/// inner ones. By default the whole tensor is one matrix.
struct Stack {
  std::int64_t outer = 1, inner = 1;
  std::int64_t width = 1;  ///< elements of a row: the channels of one pixel or token

  std::int64_t count() const { return outer * inner; }
  std::int64_t rows(std::int64_t elements) const { return elements / (outer * inner * width); }
  /// The number of row r of matrix b, which has `rows` of them, among the rows of the tensor; the
  /// next one of the matrix stands `inner` further.
  std::int64_t row(std::int64_t b, std::int64_t r, std::int64_t rows) const {
    return (b / inner * rows + r) * inner + b % inner;
  }
};

/// Which operand of a product: the left one, A, or the right one, B.
enum class Side : std::uint8_t { a, b };
inline Side other_side(Side side) { return side == Side::a ? Side::b : Side::a; }

/// One side of a product: the unpadded source tensor and the rule that reads the operand from each
/// of its matrices.
struct ProductSide {
  const Tensor* source = nullptr;
  const unit::Gather* gather = nullptr;  ///< of one matrix [rows, width]
  Role role = Role::activation;
  Stack stack = {};
  /// The product reduces along the rows (batch and space in wgrad, output channels of the weights
  /// in dgrad), not along the width: blocks of block formats run that way.
  bool along_rows = false;
  /// The one scale of the tensor that a policy chose for the numerics below it; networks leave it
  /// empty.
  std::optional<float> scale = std::nullopt;
};

/// The identity of a GEMM and its operands: D (m x n, row-major) = A (m x k) x B^T (n x k), for
/// every matrix of the stacks; a side with one matrix serves all.
/// fprop: A activations, B weights. dgrad: A output gradients, B weights. wgrad: A output
/// gradients, B activations. Where both operands are activations (attention) B is one too.
struct Product {
  std::string_view layer;
  GemmKind kind = GemmKind::fprop;
  std::int64_t m = 0, n = 0, k = 0;
  ProductSide a, b;
  float* d = nullptr;
  Stack d_stack = {};  ///< D seen as [outer, m, inner, n]; its count is the number of products
  /// Which of the layer's `repetitions` products of this kind in a pass it is (time steps of a
  /// recurrence, in the order they are computed).
  std::int64_t repetition = 0, repetitions = 1;

  ProductSide& side(Side which) { return which == Side::a ? a : b; }
  const ProductSide& side(Side which) const { return which == Side::a ? a : b; }
  /// Of that operand of one product.
  std::int64_t rows(Side which) const { return which == Side::a ? m : n; }

  /// That number among the products of all parts of a training step's batch.
  std::int64_t repetition_in(const Step& step) const {
    return step.part * repetitions + repetition;
  }
};

/// A tensor between two operators, forward or backward; passed once.
struct Edge {
  std::string_view
      layer;  ///< the operator that produced the tensor, or the one it is a gradient of
  bool backward = false;
};

/// What backward reads a kept tensor for.
enum class Use : std::uint8_t {
  linear,     ///< a gradient that is linear in it: an unbiased copy gives an unbiased gradient
  sign,       ///< which elements are positive, negative, zero or NaN (ReLU)
  index,      ///< which elements were chosen (max-pooling, bounds, token numbers)
  statistic,  ///< all else: statistics, gates, derivatives that are not linear in it
};
inline constexpr std::size_t kUses = 4;
using Uses = std::bitset<kUses>;  ///< bit u: static_cast<Use>(u)

/// The identity of a kept tensor: what produced it ("input" for the network's input), and its use.
struct Kept {
  std::string_view layer;
  Use use = Use::linear;
};

/// A kept tensor, shared by its uses and the numerics.
using SharedTensor = std::shared_ptr<const Tensor>;

/// What is stored of a tensor for one use. The default stores the tensor as it is, once for all
/// uses.
struct Saved {
  SharedTensor tensor;
  // For numerics that store it in another form:
  Shape shape = {};
  std::vector<std::uint8_t> packed = {};
};

/// A parameter at the moment of its update.
struct Update {
  std::string_view parameter;
  Tensor* value = nullptr;
  const Tensor* gradient = nullptr;
  const std::vector<float>* delta = nullptr;  ///< what the optimizer adds, element by element
};

/// State as named byte strings.
using NamedState = std::vector<std::pair<std::string, std::string>>;

/// How many of a worker's first micro-batches take part in a step, and what their gradients are
/// divided by.
struct Participation {
  std::int64_t micro_batches = 1;
  bool realised = false;  ///< by all that take part, of all workers, not by all there are
};

/// How a batch normalisation computes its statistics (the hook of Range, Shift and Ghost BN).
struct NormRule {
  enum class Statistic : std::uint8_t { variance, range, shift } statistic = Statistic::variance;
  /// Of the range: what makes it a standard deviation (range_factor()).
  enum class Constant : std::uint8_t { exact, published, repository } constant = Constant::exact;
  std::int32_t chunks = 1;  ///< of the range: the mean of the ranges of so many parts of the values
  std::int64_t ghost_batch = 0;  ///< samples per statistic, 0 = the whole batch
  /// Of the variance over the whole batch: the statistics are those of all workers' micro-batches
  /// of the same number together.
  bool synchronised = false;
};

/// The hooks of a run. Every default is float32; networks contain no policy. Each is
/// told the step it belongs to, so that one object serves any number of threads: concurrent
/// evaluation calls begin_step, end_step, product, table, edge, vector_result and norm on several
/// at once.
class Numerics {
 public:
  virtual ~Numerics() = default;

  /// Around every training step, and around every batch of an evaluation.
  virtual void begin_step(const Step&) {}
  virtual void end_step(const Step&) {}
  /// After the validation of each training epoch.
  virtual void end_epoch(const Epoch&) {}

  /// A product. Default: unit f32.sequential on the float32 operands.
  virtual void product(const Step&, const Product&);
  /// What an operator reads instead of `parameter`: a table of rows, the scales of a quantizer, the
  /// bias of a product (empty: it is added already). Default: null, the parameter itself.
  virtual SharedTensor table(const Step&, std::string_view /*layer*/, const Tensor& /*parameter*/) {
    return nullptr;
  }
  /// A tensor between operators; may be rewritten in place. Default: untouched.
  virtual void edge(const Step&, const Edge&, Tensor&) {}
  /// Saving for backward, and giving back: once for each use of a tensor, in the order of Use.
  /// Default: the tensor itself.
  virtual Saved save(const Step&, const Kept&, const SharedTensor& tensor) { return {tensor}; }
  virtual SharedTensor restore(const Step&, const Kept&, Saved saved) { return saved.tensor; }
  /// The result of an operator that is not a GEMM; may be rewritten in place. Default: untouched.
  virtual void vector_result(const Step&, std::string_view /*layer*/, std::string_view /*op*/,
                             Tensor&) {}
  /// Statistics of a normalisation layer. Default: variance over the whole batch.
  virtual NormRule norm(const Step&, std::string_view /*layer*/) { return {}; }
  /// A penalty on a parameter: returns its loss and adds its derivative to `gradient`. Default:
  /// none.
  virtual double penalty(const Step&, std::string_view /*parameter*/, const Tensor& /*value*/,
                         Tensor& /*gradient*/) {
    return 0;
  }
  /// Applies an update. Default: value += delta in float32.
  virtual void update(const Step&, const Update&);
  /// A tensor of the optimizer's state ("velocity", "first", "second") after the parameter's
  /// update; may be rewritten in place. Default: untouched.
  virtual void optimizer_state(const Step&, std::string_view /*parameter*/,
                               std::string_view /*name*/, Tensor& /*state*/) {}
  /// The factor on the loss before backward (gradients are divided by it before the update).
  /// Default: 1.
  virtual float loss_scale(const Step&) { return 1; }
  /// The unscaled gradients of a worker, which accept_gradients() decides on.
  virtual void worker_gradients(const Step&, const std::vector<Tensor>& /*gradients*/) {}
  /// Whether the step is taken (dynamic loss scaling skips overflows). Default: yes.
  virtual bool accept_gradients(const Step&) { return true; }
  /// What a worker with so many micro-batches contributes. Default: all of them.
  virtual Participation participation(const Step&, std::int64_t /*worker*/,
                                      std::int64_t micro_batches) {
    return {micro_batches};
  }
  /// How the workers' gradients become one per parameter. Default: their float32 mean.
  virtual std::unique_ptr<Exchange> exchange(const Step&, const Senders& senders) {
    return make_exchange(senders.workers, {.order = senders.order.value_or(ExchangeOrder())});
  }
  /// Sums that the parts of a step add to. Where several processes share the parts, each adds what
  /// the others' parts added to theirs. Default: none.
  virtual std::vector<std::int64_t> counts() const { return {}; }
  virtual void add_counts(std::span<const std::int64_t> /*more*/) {}
  /// All state that must survive a restart, as named byte strings. Default: none.
  virtual void save_state(NamedState& /*state*/) const {}
  virtual void load_state(const NamedState& /*state*/) {}
};

/// Passes every hook on to `inner`, which must outlive it. A hook that is overridden calls the one
/// of this class where the inner numerics should see the call.
class Forwarding : public Numerics {
 public:
  explicit Forwarding(Numerics& inner) : inner_(&inner) {}

  void begin_step(const Step& step) override { inner_->begin_step(step); }
  void end_step(const Step& step) override { inner_->end_step(step); }
  void end_epoch(const Epoch& epoch) override { inner_->end_epoch(epoch); }
  void product(const Step& step, const Product& product) override {
    inner_->product(step, product);
  }
  SharedTensor table(const Step& step, std::string_view layer, const Tensor& parameter) override {
    return inner_->table(step, layer, parameter);
  }
  void edge(const Step& step, const Edge& edge, Tensor& tensor) override {
    inner_->edge(step, edge, tensor);
  }
  Saved save(const Step& step, const Kept& kept, const SharedTensor& tensor) override {
    return inner_->save(step, kept, tensor);
  }
  SharedTensor restore(const Step& step, const Kept& kept, Saved saved) override {
    return inner_->restore(step, kept, std::move(saved));
  }
  void vector_result(const Step& step, std::string_view layer, std::string_view op,
                     Tensor& result) override {
    inner_->vector_result(step, layer, op, result);
  }
  NormRule norm(const Step& step, std::string_view layer) override {
    return inner_->norm(step, layer);
  }
  double penalty(const Step& step, std::string_view parameter, const Tensor& value,
                 Tensor& gradient) override {
    return inner_->penalty(step, parameter, value, gradient);
  }
  void update(const Step& step, const Update& update) override { inner_->update(step, update); }
  void optimizer_state(const Step& step, std::string_view parameter, std::string_view name,
                       Tensor& state) override {
    inner_->optimizer_state(step, parameter, name, state);
  }
  float loss_scale(const Step& step) override { return inner_->loss_scale(step); }
  void worker_gradients(const Step& step, const std::vector<Tensor>& gradients) override {
    inner_->worker_gradients(step, gradients);
  }
  bool accept_gradients(const Step& step) override { return inner_->accept_gradients(step); }
  Participation participation(const Step& step, std::int64_t worker,
                              std::int64_t micro_batches) override {
    return inner_->participation(step, worker, micro_batches);
  }
  std::unique_ptr<Exchange> exchange(const Step& step, const Senders& senders) override {
    return inner_->exchange(step, senders);
  }
  std::vector<std::int64_t> counts() const override { return inner_->counts(); }
  void add_counts(std::span<const std::int64_t> more) override { inner_->add_counts(more); }
  void save_state(NamedState& state) const override { inner_->save_state(state); }
  void load_state(const NamedState& state) override { inner_->load_state(state); }

 protected:
  Numerics& inner() const { return *inner_; }
  /// From now on to those numerics.
  void forward_to(Numerics& inner) { inner_ = &inner; }

 private:
  Numerics* inner_;
};

/// What becomes of those gradients, each of another worker.
Exchanged exchange_all(Numerics&, const Step&, std::vector<WorkerGradient>);

}  // namespace numemu::net
