#include "policies/exchange/base/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

#include "emu/net/memory.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "policies/numerics/random_identity.hpp"

namespace numemu::policies {

std::size_t sent_elements(double share, std::size_t n) {
  return static_cast<std::size_t>(std::max(1.0, std::round(share * static_cast<double>(n))));
}

double index_bits(std::size_t n) { return n < 2 ? 0 : static_cast<double>(std::bit_width(n - 1)); }

std::vector<std::size_t> largest(std::span<const float> x, std::size_t count) {
  std::vector<std::size_t> places(count);
  if (count == x.size()) {
    std::iota(places.begin(), places.end(), std::size_t{0});
    return places;
  }
  const auto magnitude = [](float value) {
    return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
  };
  std::vector<std::uint32_t> magnitudes(x.size());
  std::ranges::transform(x, magnitudes.begin(), magnitude);
  const auto cut = magnitudes.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::nth_element(magnitudes, cut - 1, std::ranges::greater());
  const std::uint32_t least = cut[-1];
  auto equal =
      std::count(magnitudes.begin(), cut, least);  // of those at `least`, how many are sent
  std::size_t found = 0;
  for (std::size_t i = 0; found < count; ++i) {
    const std::uint32_t of_this = magnitude(x[i]);
    if (of_this > least || (of_this == least && equal-- > 0)) places[found++] = i;
  }
  return places;
}

void sort_by_value(std::span<std::size_t> places, std::span<const float> x) {
  // Magnitude and sign as an integer: an order of all bits, in which both zeros are 0.
  std::ranges::stable_sort(places, {}, [&](std::size_t place) {
    const auto magnitude =
        static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x[place]) & 0x7fffffffu);
    return std::signbit(x[place]) ? -magnitude : magnitude;
  });
}

void keep_only(const std::vector<std::size_t>& places, std::span<float> x) {
  const std::vector<float> all(x.begin(), x.end());
  std::ranges::fill(x, 0.0f);
  for (const std::size_t place : places) x[place] = all[place];
}

void draw_signs(const RandomSource& random, std::span<float> x) {
  float* const values = x.data();
  net::for_each_row(std::ssize(x), 1, [=](std::int64_t i) {
    if (values[i] != values[i]) return;
    const double up = (1 + double{values[i]}) / 2;
    values[i] = random.uniform(static_cast<std::uint64_t>(i)) < up ? 1.0f : -1.0f;
  });
}

RandomSource sign_random(std::uint64_t seed, const Message& message, std::string_view use) {
  net::Step step = message.step;
  step.part = message.sender;
  return stored_random(seed, message.parameter, "exchange", step, use);
}

double Message::index_bits() const {
  return policies::index_bits(static_cast<std::size_t>(net::element_count(shape)));
}

ExchangeRule::ExchangeRule(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
  for (const net::Parameter* parameter : binding().recipe.graph().parameters())
    parameters_.push_back(parameter);
}

std::string ExchangeRule::state_name(const Message& message) {
  return fmt::format("worker{}/{}", message.sender, message.parameter);
}

/// The exchange of one step: all gradients wait for finish().
class ExchangeRule::Gathered final : public net::Exchange {
 public:
  Gathered(ExchangeRule& rule, const net::Step& step, const net::Senders& senders)
      : rule_(rule), step_(step), workers_(senders.workers) {
    order_ = senders.order.value_or(rule.binding().recipe->exchange().order);
    net::Senders below{.workers = workers_, .order = order_};
    if (grouped()) {
      if (workers_ % order_.node != 0) {
        throw Error(
            fmt::format("exchange order {}: expected a multiple of {} workers, there are {}",
                        net::to_string(order_), order_.node, workers_));
      }
      // Nodes are what sends; what comes back travels, too.
      below = {.workers = workers_ / order_.node,
               .order = net::ExchangeOrder{net::ExchangeOrder::Kind::server}};
    }
    inner_ = rule.inner().exchange(step, below);
  }

  void add(net::WorkerGradient given) override {
    if (given.parameters.size() != rule_.parameters_.size()) {
      throw Error(fmt::format("exchange: worker {} sent {} gradients, the graph has {}",
                              given.worker, given.parameters.size(), rule_.parameters_.size()));
    }
    if (!sent_.empty()) {
      std::int64_t elements = 0;
      for (const net::Tensor& tensor : given.parameters) elements += tensor.size();
      claims_.push_back(
          std::make_unique<net::MemoryClaim>(elements, "gradients of simulated workers"));
    }
    sent_.push_back(std::move(given));
  }

  net::Exchanged finish() override {
    const auto parameters = rule_.parameters_.size();
    const std::int64_t workers = count_ = std::ssize(sent_);
    for (std::size_t p = 0; p < parameters; ++p) {
      for (std::size_t w = 0; chosen(p) && w < sent_.size(); ++w)
        rule_.local(message(p, sent_[w].worker), values(w, p));
    }
    if (grouped()) join_nodes();
    std::vector<double> bits(parameters, 0);
    for (std::size_t p = 0; p < parameters; ++p) {
      if (!chosen(p)) continue;
      std::vector<Values> all;
      for (std::size_t w = 0; w < sent_.size(); ++w) all.push_back(values(w, p));
      rule_.begin(message(p, 0), all);
      for (std::size_t w = 0; w < sent_.size(); ++w)
        bits[p] += rule_.send(message(p, static_cast<std::int64_t>(w)), all[w]);
    }
    if (grouped()) weight_nodes(workers);
    // What a node sends or gets crosses the links between nodes once, for all of its workers.
    const double share = static_cast<double>(count_) / static_cast<double>(workers);
    for (net::WorkerGradient& gradient : sent_) inner_->add(std::move(gradient));
    sent_.clear();
    net::Exchanged result = inner_->finish();
    for (std::size_t p = 0; p < parameters; ++p) {
      net::WireBits& wire = result.wire[p];
      if (chosen(p)) wire.sent = bits[p] / static_cast<double>(count_);
      if (chosen(p)) {
        wire.returned =
            rule_.give_back(message(p, 0), std::span(result.gradients[p].data), wire.returned);
      }
      wire.sent *= share;
      wire.returned *= share;
    }
    return result;
  }

 private:
  bool grouped() const { return order_.kind == net::ExchangeOrder::Kind::hierarchical; }

  bool chosen(std::size_t p) const {
    const net::Parameter& parameter = *rule_.parameters_[p];
    return parameter.trained && rule_.takes(parameter.value.shape) &&
           rule_.binding().find(parameter.name) != nullptr;
  }
  Values values(std::size_t w, std::size_t p) { return std::span(sent_[w].parameters[p].data); }

  Message message(std::size_t p, std::int64_t sender) const {
    const net::Parameter& parameter = *rule_.parameters_[p];
    const std::string node = parameter.name.substr(0, parameter.name.rfind('.'));
    const auto& role = rule_.binding().recipe.layer(node)[RolePart::exchange];
    return {.step = step_,
            .parameter = parameter.name,
            .shape = parameter.value.shape,
            .options = rule_.binding().find(parameter.name),
            .sender = sender,
            .senders = count_,
            .order = order_,
            .value_bits = !role                    ? 32.0
                          : role->block != nullptr ? role->block->bits_per_element()
                                                   : static_cast<double>(role->format->bits)};
  }

  /// The float32 means of neighbours. The last node of a short batch has fewer.
  void join_nodes() {
    std::vector<net::WorkerGradient> nodes;
    for (std::size_t first = 0; first < sent_.size();
         first += static_cast<std::size_t>(order_.node)) {
      const auto end = std::min(sent_.size(), first + static_cast<std::size_t>(order_.node));
      const std::unique_ptr<net::Exchange> mean = net::make_exchange(order_.node);
      for (std::size_t w = first; w < end; ++w) mean->add(std::move(sent_[w]));
      nodes.push_back({std::ssize(nodes), mean->finish().gradients});
    }
    sent_ = std::move(nodes);
    count_ = std::ssize(sent_);
  }

  /// The mean over nodes is that over workers: what was received counts for as many as sent it.
  void weight_nodes(std::int64_t workers) {
    if (count_ == 1 || workers % order_.node == 0) return;
    for (std::int64_t node = 0; node < count_; ++node) {
      const std::int64_t own = std::min(order_.node, workers - node * order_.node);
      const auto weight =
          static_cast<float>(static_cast<double>(own * count_) / static_cast<double>(workers));
      for (net::Tensor& tensor : sent_[static_cast<std::size_t>(node)].parameters) {
        float* const x = tensor.data.data();
        net::for_each_element(tensor.size(),
                              [=](std::int64_t i) { x[i] = net::neutral(x[i] * weight); });
      }
    }
  }

  ExchangeRule& rule_;
  const net::Step step_;
  const std::int64_t workers_;
  net::ExchangeOrder order_;
  std::unique_ptr<net::Exchange> inner_;
  std::vector<net::WorkerGradient> sent_;
  std::vector<std::unique_ptr<net::MemoryClaim>> claims_;
  std::int64_t count_ = 0;  ///< of senders
};

std::unique_ptr<net::Exchange> ExchangeRule::exchange(const net::Step& step,
                                                      const net::Senders& senders) {
  return std::make_unique<Gathered>(*this, step, senders);
}

std::vector<float>& WorkerState::of(const std::string& name, std::size_t size) {
  std::vector<float>& tensor = tensors_[name];
  if (tensor.empty()) tensor.resize(size);
  if (tensor.size() != size) {
    throw Error(fmt::format("state {}/{}: expected {} elements, found {}", prefix_, name, size,
                            tensor.size()));
  }
  return tensor;
}

void ErrorFeedback::save_state(net::NamedState& state) const {
  ExchangeRule::save_state(state);
  residuals_.save(state);
}

void ErrorFeedback::load_state(const net::NamedState& state) {
  ExchangeRule::load_state(state);
  residuals_.load(state);
}

float ErrorFeedback::keep(const Message&, float x, float, float sent) const {
  const bool none = sent == x || std::isnan(x);
  return none ? 0.0f : net::neutral(x - sent);
}

double ErrorFeedback::give_back(const Message& message, Values mean, double bits) {
  const auto sent = static_cast<double>(std::ssize(mean) - std::ranges::count(mean, 0.0f));
  return std::min(bits, sent * (message.index_bits() + message.value_bits));
}

void ErrorFeedback::begin(const Message& message, std::span<const Values> all) {
  fed_.clear();
  std::vector<std::span<const float>> fed;
  for (std::size_t sender = 0; sender < all.size(); ++sender) {
    Message own = message;
    own.sender = static_cast<std::int64_t>(sender);
    const std::vector<float>& residual = residuals_.of(state_name(own), all[sender].size());
    std::vector<float>& x = fed_.emplace_back(all[sender].begin(), all[sender].end());
    for (std::size_t i = 0; i < x.size(); ++i) {
      // Without a residual -0 stays -0.
      if (residual[i] != 0) x[i] = net::neutral(residual[i] + x[i]);
    }
    fed.emplace_back(x);
  }
  see(message, fed);
}

double ErrorFeedback::send(const Message& message, Values values) {
  std::vector<float>& residual = residuals_.of(state_name(message), values.size());
  const std::vector<float>& x = fed_[static_cast<std::size_t>(message.sender)];
  std::vector<float> sent = x;
  const double bits = compress(message, values, sent);
  // A rule that compares magnitudes would leave a NaN behind for ever, and training would seem
  // well.
  for (std::size_t i = 0; i < x.size(); ++i) sent[i] = std::isnan(x[i]) ? x[i] : sent[i];
  for (std::size_t i = 0; i < x.size(); ++i)
    residual[i] = keep(message, x[i], residual[i], sent[i]);
  std::ranges::copy(sent, values.begin());
  return bits;
}

}  // namespace numemu::policies
