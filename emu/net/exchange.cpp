#include "emu/net/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/net/memory.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

constexpr double kFloat32Bits = 32;
constexpr const char* kOrders[] = {"index", "tree", "ring", "hierarchical", "server"};

void require_equal_shapes(const WorkerGradient& given, const WorkerGradient& first) {
  bool same = given.parameters.size() == first.parameters.size();
  for (std::size_t p = 0; same && p < first.parameters.size(); ++p)
    same = given.parameters[p].shape == first.parameters[p].shape;
  if (same) return;
  throw Error(fmt::format("exchange: worker {} sent gradients of other shapes than worker {}",
                          given.worker, first.worker));
}

/// Zeros; of the empty tensor of an untrained parameter an empty one, whose shape has an element.
Tensor like(const Tensor& tensor) { return tensor.empty() ? Tensor() : Tensor(tensor.shape); }

void divide(std::vector<Tensor>& sums, double count) {
  if (count == 1) return;
  for (Tensor& tensor : sums) {
    float* const sum = tensor.data.data();
    for_each_element(tensor.size(), [=, n = static_cast<float>(count)](std::int64_t i) {
      sum[i] = neutral(sum[i] / n);
    });
  }
}

class Reduction final : public Exchange {
 public:
  Reduction(std::int64_t workers, ExchangeLinks links) : links_(std::move(links)) {
    const ExchangeOrder& order = links_.order;
    if (order.kind == ExchangeOrder::Kind::hierarchical && workers % order.node != 0) {
      throw Error(fmt::format("exchange order {}: expected a multiple of {} workers, there are {}",
                              to_string(order), order.node, workers));
    }
  }

  void add(WorkerGradient given) override {
    if (seen_ == 0) {
      first_.worker = given.worker;
      for (const Tensor& tensor : given.parameters) {
        first_.parameters.emplace_back().shape = tensor.shape;
        elements_ += tensor.size();
      }
      bits_.resize(given.parameters.size());
    }
    require_equal_shapes(given, first_);
    ++seen_;
    std::vector<Tensor> values = std::move(given.parameters);
    switch (links_.order.kind) {
      case ExchangeOrder::Kind::hierarchical:
        return add_to_node(std::move(values));
      case ExchangeOrder::Kind::tree:
        return add_to_tree(std::move(values));
      case ExchangeOrder::Kind::ring:
        return hold(std::move(values));
      default:
        travel(values, fmt::format("worker{}", given.worker));
    }
    add_to_sum(std::move(values));
  }

  Exchanged finish() override {
    if (seen_ == 0) throw Error("exchange: no worker sent a gradient");
    if (!node_.empty()) close_node((seen_ - 1) % links_.order.node + 1);
    Exchanged result;
    switch (links_.order.kind) {
      case ExchangeOrder::Kind::tree:
        while (held_.size() > 1) join_last();
        result.gradients = std::move(held_.back());
        break;
      case ExchangeOrder::Kind::ring:
        result.gradients = around_the_ring();
        break;
      default:
        result.gradients = sum_of_held();
    }
    divide(result.gradients, divisor());
    for (WireBits& bits : bits_) bits.sent /= static_cast<double>(seen_);
    come_back(result.gradients);
    result.wire = std::move(bits_);
    return result;
  }

 private:
  /// What receivers read of the values; their bits are counted.
  void travel(std::vector<Tensor>& values, const std::string& sender) {
    for (std::size_t p = 0; p < values.size(); ++p) bits_[p].sent += carried(p, sender, values[p]);
  }
  double carried(std::size_t p, const std::string& sender, Tensor& value) const {
    if (value.empty()) return 0;
    return links_.carry ? links_.carry(p, sender, value)
                        : kFloat32Bits * static_cast<double>(value.size());
  }
  /// The mean, as each worker gets it: of an index order in float32.
  void come_back(std::vector<Tensor>& mean) {
    const bool exact = links_.order.kind == ExchangeOrder::Kind::index;
    // What a node gets serves all of its workers.
    const double share =
        nodes_ > 0 ? static_cast<double>(nodes_) / static_cast<double>(seen_) : 1.0;
    for (std::size_t p = 0; p < mean.size(); ++p) {
      bits_[p].returned = share * (exact ? kFloat32Bits * static_cast<double>(mean[p].size())
                                         : carried(p, "mean", mean[p]));
    }
  }

  void add_values(std::size_t p, std::string_view name, std::span<const float* const> addends,
                  std::int64_t n, float* sum) const {
    if (n == 0) return;  // an untrained parameter, or a part of a small one
    if (links_.add) return links_.add(p, name, addends, n, sum);
    for_each_element(n, [&](std::int64_t i) {
      float total = addends[0][i];
      for (std::size_t w = 1; w < addends.size(); ++w) total += addends[w][i];
      sum[i] = total;
    });
  }
  /// `sum` plus `values`, into the former.
  void join(std::vector<Tensor>& sum, const std::vector<Tensor>& values,
            std::string_view name) const {
    for (std::size_t p = 0; p < sum.size(); ++p) {
      const float* const addends[] = {sum[p].data.data(), values[p].data.data()};
      add_values(p, name, addends, sum[p].size(), sum[p].data.data());
    }
  }

  void hold(std::vector<Tensor> values) {
    if (!held_.empty()) claim();
    held_.push_back(std::move(values));
  }
  void claim() {
    claims_.push_back(std::make_unique<MemoryClaim>(elements_, "gradients of simulated workers"));
  }
  /// A chain of float32 needs no more than the sum so far.
  void add_to_sum(std::vector<Tensor> values) {
    if (links_.add || held_.empty()) return hold(std::move(values));
    if (claims_.empty()) claim();
    join(held_.back(), values, "sum");
  }
  std::vector<Tensor> sum_of_held() {
    std::vector<Tensor> sum = std::move(held_.front());
    if (held_.size() == 1) return sum;
    for (std::size_t p = 0; p < sum.size(); ++p) {
      std::vector<const float*> addends = {sum[p].data.data()};
      for (std::size_t w = 1; w < held_.size(); ++w) addends.push_back(held_[w][p].data.data());
      Tensor total = like(sum[p]);
      add_values(p, "sum", addends, total.size(), total.data.data());
      sum[p] = std::move(total);
    }
    return sum;
  }

  // Sums of 2^i neighbours each, the largest first: those of equal size become one. What is left
  // over waits for the end.
  void add_to_tree(std::vector<Tensor> values) {
    hold(std::move(values));
    sizes_.push_back(1);
    while (sizes_.size() > 1 && sizes_.back() == sizes_[sizes_.size() - 2]) join_last();
  }
  /// The last sum travels to the one before it.
  void join_last() {
    std::vector<Tensor> last = std::move(held_.back());
    held_.pop_back();
    claims_.pop_back();
    const std::string name = fmt::format("sum{}", sums_++);
    travel(last, name);
    join(held_.back(), last, name);
    sizes_[sizes_.size() - 2] += sizes_.back();
    sizes_.pop_back();
  }

  void add_to_node(std::vector<Tensor> values) {
    const std::int64_t place = (seen_ - 1) % links_.order.node;
    if (place == 0) {
      node_ = std::move(values);
    } else {
      for (std::size_t p = 0; p < node_.size(); ++p) {
        float* const sum = node_[p].data.data();
        const float* const x = values[p].data.data();
        for_each_element(node_[p].size(), [=](std::int64_t i) { sum[i] += x[i]; });
      }
    }
    if (place + 1 == links_.order.node) close_node(links_.order.node);
  }
  /// The mean of its workers goes to the other nodes. The last node of a short batch has fewer, and
  /// its mean counts for less.
  void close_node(std::int64_t workers) {
    divide(node_, static_cast<double>(workers));
    travel(node_, fmt::format("node{}", nodes_++));
    if (workers < links_.order.node && nodes_ > 1)
      divide(node_, static_cast<double>(links_.order.node) / static_cast<double>(workers));
    add_to_sum(std::exchange(node_, {}));
  }
  /// Senders, or full nodes.
  double divisor() const {
    if (links_.order.kind != ExchangeOrder::Kind::hierarchical) return static_cast<double>(seen_);
    if (nodes_ == 1) return 1;
    return static_cast<double>(seen_) / static_cast<double>(links_.order.node);
  }

  /// Part c of each tensor, of `count` parts of nearly equal length.
  static std::pair<std::int64_t, std::int64_t> part(std::int64_t size, std::int64_t c,
                                                    std::int64_t count) {
    return {size * c / count, size * (c + 1) / count};
  }
  /// In each of count - 1 rounds a worker adds its own values to the parts that it receives.
  std::vector<Tensor> around_the_ring() {
    const auto count = static_cast<std::int64_t>(held_.size());
    std::vector<Tensor> sum;
    for (const Tensor& tensor : held_.front()) sum.push_back(like(tensor));
    for (std::int64_t hop = 0; hop < count; ++hop) {
      for (std::size_t p = 0; p < sum.size(); ++p) {
        for (std::int64_t c = 0; c < count; ++c) {
          const auto [from, to] = part(sum[p].size(), c, count);
          const std::vector<Tensor>& own = held_[static_cast<std::size_t>((c + 1 + hop) % count)];
          const float* const x = own[p].data.data() + from;
          float* const total = sum[p].data.data() + from;
          if (hop == 0) {
            std::copy(x, x + (to - from), total);
          } else {
            const float* const addends[] = {total, x};
            add_values(p, fmt::format("sum{}.{}", hop - 1, c), addends, to - from, total);
          }
        }
      }
      if (hop + 1 < count) travel(sum, fmt::format("sum{}", hop));
    }
    return sum;
  }

  ExchangeLinks links_;
  WorkerGradient first_;  ///< its shapes
  std::int64_t seen_ = 0, elements_ = 0, nodes_ = 0;
  std::vector<WireBits> bits_;
  std::vector<std::vector<Tensor>> held_;             ///< gradients, or sums of several
  std::vector<std::unique_ptr<MemoryClaim>> claims_;  ///< of all but the first
  std::vector<std::int64_t> sizes_;                   ///< of a tree: workers in each sum
  std::int64_t sums_ = 0;                             ///< of a tree: that travelled
  std::vector<Tensor> node_;                          ///< the sum of the node begun
};

}  // namespace

std::string to_string(const ExchangeOrder& order) {
  const char* const name = kOrders[static_cast<std::size_t>(order.kind)];
  if (order.kind != ExchangeOrder::Kind::hierarchical) return name;
  return fmt::format("{}({})", name, order.node);
}

ExchangeOrder read_exchange_order(const std::string& text) {
  const CallText call = parse_call(text);
  const std::vector<std::string> names(std::begin(kOrders), std::end(kOrders));
  const auto found = std::ranges::find(names, call.name);
  if (found == names.end()) throw Error(unknown_name("exchange order", call.name, names));
  ExchangeOrder order{static_cast<ExchangeOrder::Kind>(found - names.begin())};
  const bool nodes = order.kind == ExchangeOrder::Kind::hierarchical;
  if (call.arguments.size() != (nodes ? 1 : 0)) {
    throw Error(nodes ? "exchange order hierarchical: expected the workers of a node, as in "
                        "hierarchical(4)"
                      : fmt::format("exchange order {}: expected no argument", call.name));
  }
  if (!nodes) return order;
  const std::optional<std::int64_t> node = whole_argument(call.arguments[0], 1, kMostWorkers);
  if (!node) {
    throw Error(fmt::format("exchange order hierarchical: expected from 1 to {} workers of a node",
                            kMostWorkers));
  }
  order.node = *node;
  return order;
}

std::unique_ptr<Exchange> make_exchange(std::int64_t workers, ExchangeLinks links) {
  return std::make_unique<Reduction>(workers, std::move(links));
}

}  // namespace numemu::net
