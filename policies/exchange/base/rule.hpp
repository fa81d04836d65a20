// Rules of exchange: what workers send of their gradients, as a base of the policies that compress.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/exchange.hpp"
#include "formats/random.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {

// Which elements of a tensor a rule of exchange sends.

/// How many elements of n a share is: rounded to the nearest, at least 1.
std::size_t sent_elements(double share, std::size_t n);
/// The bits of a place among n elements.
double index_bits(std::size_t n);
/// The places of the `count` elements of largest magnitude, ascending; of equal ones the lower
/// places. NaN counts as the largest, so that no residual keeps one. 1 <= count <= size.
std::vector<std::size_t> largest(std::span<const float> x, std::size_t count);
/// Sorts places by their elements, the least first; equal ones keep their order. NaN stands beyond
/// the infinities, on the side of its sign.
void sort_by_value(std::span<std::size_t> places, std::span<const float> x);
/// Writes zeros at all other places.
void keep_only(const std::vector<std::size_t>& places, std::span<float> x);

/// One tensor of one step that a sender sends: a worker, or a node of the hierarchical order.
struct Message {
  const net::Step& step;
  const std::string& parameter;
  const net::Shape& shape;
  const PolicyOptions* options;  ///< of the layer
  std::int64_t sender = 0, senders = 1;
  const net::ExchangeOrder& order;
  double value_bits = 32;  ///< of an element in the format of the role `exchange`

  template <class Options>
  const Options& as() const {
    return *static_cast<const Options*>(options);
  }
  /// The bits of a place among the elements.
  double index_bits() const;
};

// One random sign for each element, whose mean is the element: what one bit carries of it.

/// Replaces each x in [-1, 1] by +1 with probability (1 + x) / 2 and else by -1: element i is +1
/// where its uniform number is below. A NaN stays, so that a training that diverged is seen.
void draw_signs(const RandomSource&, std::span<float> x);

/// The draws of a message of the run with that seed: tensor PARAMETER/exchange/STEP.SENDER/USE.
RandomSource sign_random(std::uint64_t seed, const Message&, std::string_view use);

/// Gathers the gradients of all workers and has each tensor that chose the rule, and that the rule
/// takes, exchanged by it; the others are sent whole. What receivers read of the messages
/// goes on to the numerics below, in the format and the order of the recipe. Under the order
/// hierarchical(N) a node sends the float32 mean of its N workers.
class ExchangeRule : public Policy {
 public:
  ExchangeRule(Binding binding, net::Numerics& inner);
  std::unique_ptr<net::Exchange> exchange(const net::Step&, const net::Senders&) override;

 protected:
  using Values = std::span<float>;

  /// Whether the rule exchanges tensors of that shape. Default: not those of one axis (biases,
  /// normalisation).
  virtual bool takes(const net::Shape& shape) const { return shape.size() > 1; }
  /// What a worker makes of its gradient before anything is sent: where it has state of its own.
  /// The message's sender is the worker.
  virtual void local(const Message&, Values /*gradient*/) {}
  /// Before the first sender sends the tensor: the values of all of them.
  virtual void begin(const Message&, std::span<const Values> /*all*/) {}
  /// Replaces the values by what receivers read of the message. Returns its bits.
  virtual double send(const Message&, Values values) = 0;
  /// Replaces the mean of what all sent by what comes back. Returns its bits; by default what the
  /// numerics below count.
  virtual double give_back(const Message&, Values /*mean*/, double bits) { return bits; }

  /// "worker3/conv1.weight"
  static std::string state_name(const Message&);

 private:
  class Gathered;
  std::vector<const net::Parameter*> parameters_;
};

/// State of one tensor per worker and parameter: created as zeros, checked, saved with the run.
class WorkerState {
 public:
  explicit WorkerState(std::string prefix) : prefix_(std::move(prefix)) {}
  /// The tensor of that name. Throws Error if its size is another one (a damaged checkpoint).
  std::vector<float>& of(const std::string& name, std::size_t size);
  void save(net::NamedState& state) const { save_tensors(prefix_, tensors_, state); }
  void load(const net::NamedState& state) { load_tensors(prefix_, state, tensors_); }

 private:
  std::string prefix_;
  StateTensors tensors_;
};

/// Rules that keep what they do not send for later steps (error feedback: Seide et al. 2014,
/// Stich et al. 2018): a worker sends of x = residual + gradient, and residual' = x - sent.
class ErrorFeedback : public ExchangeRule {
 public:
  /// `state` is the prefix of the residuals in a checkpoint, "recipe/exchange/topk".
  ErrorFeedback(Binding binding, net::Numerics& inner, std::string state)
      : ExchangeRule(std::move(binding), inner), residuals_(std::move(state)) {}

  void save_state(net::NamedState&) const override;
  void load_state(const net::NamedState&) override;

 protected:
  /// Before the first sender sends the tensor: residual + gradient of all of them.
  virtual void see(const Message&, std::span<const std::span<const float>> /*all*/) {}
  /// Replaces x, which is residual + gradient, by what is sent. Returns the bits of the message.
  virtual double compress(const Message&, std::span<const float> gradient, Values x) = 0;
  /// The next residual of an element: by default x - sent. A NaN is not kept.
  virtual float keep(const Message&, float x, float residual, float sent) const;

  /// By default the places and values of what is not zero, or all values where those are shorter:
  /// it grows with the places that differ between senders.
  double give_back(const Message&, Values mean, double bits) override;

  void begin(const Message&, std::span<const Values> all) final;
  double send(const Message&, Values values) final;

 private:
  WorkerState residuals_;
  std::vector<std::vector<float>> fed_;  ///< residual + gradient of each sender of a tensor
};

}  // namespace numemu::policies
