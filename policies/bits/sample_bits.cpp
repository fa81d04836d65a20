#include "policies/bits/sample_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <queue>
#include <set>
#include <utility>

#include "formats/error.hpp"
#include "formats/simd/block_scales.hpp"
#include "policies/bits/allocation.hpp"

namespace numemu::policies {

double item_loss(const BitItem& item, int bits) {
  const double steps = (1 << bits) - 1;
  return item.sensitivity / (steps * steps);
}

double bits_loss(const std::vector<BitItem>& items, const std::vector<int>& bits) {
  double sum = 0;
  for (std::size_t i = 0; i < items.size(); ++i) sum += item_loss(items[i], bits[i]);
  return sum;
}

std::vector<int> greedy_bits(const std::vector<BitItem>& items, double budget) {
  std::vector<int> bits(items.size(), kMostItemBits);
  double used = 0;
  // The largest of (negative price, index) comes first.
  std::priority_queue<std::pair<double, std::size_t>> prices;
  const auto offer = [&](std::size_t i) {
    if (bits[i] == 1) return;
    const double more = item_loss(items[i], bits[i] - 1) - item_loss(items[i], bits[i]);
    prices.emplace(-more / items[i].weight, i);
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    used += items[i].weight * kMostItemBits;
    offer(i);
  }
  while (!keeps_limits({used}, {budget}) && !prices.empty()) {
    const std::size_t i = prices.top().second;
    prices.pop();
    --bits[i];
    used -= items[i].weight;
    offer(i);
  }
  return bits;
}

namespace {

/// Nodes whose one product reads input 0 linearly in wgrad; others give 0.
double taps_of(const net::Op& op) {
  const auto products = op.products();
  if (products.size() != 1 || products[0].weight < 0 || op.input_use(0) != net::Use::linear)
    return 0;
  const net::Tensor& weight = op.parameters()[static_cast<std::size_t>(products[0].weight)].value;
  return static_cast<double>(weight.size()) / static_cast<double>(weight.dim(0));
}

/// Sum over groups of elements x range^2 / 4; 0 where an element is not finite.
double range_square(const float* x, std::int64_t n, std::int64_t group) {
  double sum = 0;
  for (std::int64_t first = 0; first < n; first += group) {
    const std::int64_t count = std::min(group, n - first);
    const simd::FiniteRange ends = simd::finite_range(x + first, count);
    if (!ends.all) return 0;
    const double range = double{ends.high} - ends.low;
    sum += static_cast<double>(count) * range * range / 4;
  }
  return std::isfinite(sum) ? sum : 0;
}

double mean_of(const std::vector<int>& bits) {
  double sum = 0;
  for (const int b : bits) sum += b;
  return sum / static_cast<double>(bits.size());
}

}  // namespace

SampleBits::SampleBits(const net::Graph& graph, std::map<std::string, double, std::less<>> averages)
    : averages_(std::move(averages)), next_(averages_) {
  for (const net::Node& node : graph.nodes) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->input_use(k) != net::Use::linear) continue;
      const int read = node.inputs[k];
      Value& value = values_[std::string(graph.value_name(read))];
      const double taps = taps_of(*node.op);
      if (taps > 0) {
        value.readers.push_back({node.name, taps});
        continue;
      }
      const auto inputs = static_cast<int>(graph.inputs.size());
      if (read < inputs) continue;
      const net::Node& producer = graph.nodes[static_cast<std::size_t>(read - inputs)];
      if (taps_of(*producer.op) > 0) value.follows = graph.value_name(producer.inputs[0]);
    }
  }
}

std::vector<int> SampleBits::choose(std::string_view value, const net::Tensor& x,
                                    std::int64_t group) {
  const std::int64_t samples = x.shape.empty() ? 0 : x.dim(0);
  if (x.empty()) return std::vector<int>(static_cast<std::size_t>(samples), 1);
  const std::int64_t each = x.size() / samples;
  std::vector<BitItem> items(static_cast<std::size_t>(samples));
  for (std::int64_t n = 0; n < samples; ++n)
    items[static_cast<std::size_t>(n)].sensitivity =
        range_square(x.data.data() + n * each, each, group);
  const double average = next_.find(value)->second;
  std::vector<int> bits = greedy_bits(items, average * static_cast<double>(samples));
  std::vector<BitItem>& all = items_[std::string(value)];
  for (BitItem& item : items) {
    item.weight = static_cast<double>(each);
    all.push_back(item);
  }
  return bits;
}

void SampleBits::see_gradient(std::string_view node, const net::Tensor& g) {
  if (g.empty()) return;
  double sum = 0;
  for (const float x : g.data) sum += double{x} * x;
  Squares& squares = squares_[std::string(node)];
  squares.sum += sum;
  squares.samples += static_cast<double>(g.dim(0));
}

void SampleBits::end_step() {
  const auto seen = std::exchange(items_, {});
  const auto squares = std::exchange(squares_, {});
  std::set<double> targets;
  for (const auto& [value, average] : averages_) targets.insert(average);
  for (const double target : targets) {
    std::vector<BitItem> items;
    std::vector<std::pair<std::string, std::size_t>> parts;  // value, samples
    double budget = 0;
    bool finite = true;
    for (const auto& [value, of_value] : seen) {
      const auto found = values_.find(value);
      if (averages_.at(value) != target || found == values_.end()) continue;
      double factor = 0;
      for (const Reader& reader : found->second.readers) {
        const auto s = squares.find(reader.node);
        if (s != squares.end())
          factor += reader.taps / of_value[0].weight * s->second.sum / s->second.samples;
      }
      finite = finite && std::isfinite(factor);
      if (found->second.readers.empty()) continue;
      parts.emplace_back(value, of_value.size());
      for (const BitItem& item : of_value) {
        items.push_back({item.sensitivity * factor, item.weight});
        budget += item.weight * target;
      }
    }
    if (!finite || items.empty()) continue;
    const std::vector<int> bits = greedy_bits(items, budget);
    auto first = bits.begin();
    for (const auto& [value, samples] : parts) {
      const auto last = first + static_cast<std::ptrdiff_t>(samples);
      next_[value] = mean_of({first, last});
      first = last;
    }
  }
  for (const auto& [name, value] : values_) {
    const auto leader = next_.find(value.follows);
    const auto own = next_.find(name);
    if (value.readers.empty() && leader != next_.end() && own != next_.end())
      own->second = leader->second;
  }
}

void SampleBits::restore(std::string_view value, double bits, const std::string& where) {
  const auto found = next_.find(value);
  if (found == next_.end() || !(bits >= 1 && bits <= kMostItemBits))
    throw Error(fmt::format("{}: expected 1 to {} bits of a layer with greedy bits, found {}",
                            where, kMostItemBits, bits));
  found->second = bits;
}

}  // namespace numemu::policies
