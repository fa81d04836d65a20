#include "emu/oracle/identify/summation_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "emu/oracle/dots/draft.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"
#include "formats/joined.hpp"

namespace numemu::oracle {
namespace {

/// A tree, and the products below its root as the unit counts them: more than its leaves where the
/// root is a part of the node above.
struct Measured {
  SummationNode node;
  int size = 1;

  bool closed() const { return node.leaves() == size; }
};

class TreeReader {
 public:
  TreeReader(const Ports& ports, const std::function<std::uint64_t(const Dot&)>& device)
      : ports_(ports), device_(device) {}

  std::optional<SummationNode> read() {
    const bool floats =
        ports_.d != nullptr && ports_.a->kind == Kind::floating && ports_.b->kind == Kind::floating;
    if (!floats || ports_.kept() < 1) return std::nullopt;
    // Even all ones together are lost beside the large product, in any alignment up to 32 bits.
    const int distance = std::max(ports_.d->mantissa_bits + 3, 33) +
                         static_cast<int>(std::bit_width(static_cast<unsigned>(ports_.kept())));
    const Reach reach = product_reach(ports_);
    const int top = std::min(reach.greatest, normal_reach(*ports_.d).greatest - 1);
    const int bottom = std::max(reach.least, unit::exponents_of(*ports_.d).low);
    const int short_of = std::max(0, distance - (top - bottom));
    large_ = std::clamp(distance, bottom + distance - short_of, top);
    one_ = large_ - distance + short_of;
    std::vector<int> all(static_cast<std::size_t>(ports_.kept()));
    for (std::size_t p = 0; p < all.size(); ++p) all[p] = static_cast<int>(p);
    auto measured = build(all);
    if (!measured || !measured->closed()) return std::nullopt;
    return std::move(measured->node);
  }

 private:
  /// Products below the first node that has both i and j; nothing where the answer is no number of
  /// ones.
  std::optional<int> size_of_common(int i, int j) const {
    Draft draft(ports_);
    draft.product(i, number(1, large_)).product(j, number(-1, large_));
    for (int p = 0; p < ports_.kept(); ++p) {
      if (p != i && p != j) draft.product(p, number(1, one_));
    }
    const auto dot = draft.dot();
    if (!dot) return std::nullopt;
    const Value d = decode(*ports_.d, device_(*dot));
    if (d.kind == Class::zero) return ports_.kept();
    if (d.kind != Class::finite || d.negative) return std::nullopt;
    for (int ones = 1; ones <= ports_.kept() - 2; ++ones) {
      const auto code = exact_code(ports_.d, 0, number(ones, one_));
      const Value sum = code ? decode(*ports_.d, *code) : Value{};
      const int shift = d.exponent - sum.exponent;
      if (code && shift == 0 && d.significand == sum.significand) return ports_.kept() - ones;
    }
    return std::nullopt;
  }

  /// The tree of some products that are all below one node, in ascending order.
  std::optional<Measured> build(const std::vector<int>& products) const {
    Measured tree{{products.front(), {}}, 1};
    std::map<int, std::vector<int>> by_size;
    for (std::size_t p = 1; p < products.size(); ++p) {
      const auto size = size_of_common(products.front(), products[p]);
      if (!size) return std::nullopt;
      by_size[*size].push_back(products[p]);
    }
    for (const auto& [size, others] : by_size) {
      auto other = build(others);
      if (!other || !tree.closed()) return std::nullopt;
      SummationNode node;
      node.parts.push_back(std::move(tree.node));
      // Products that meet each other where they meet the first are added at once.
      if (other->size == size) {
        for (SummationNode& part : other->node.parts) node.parts.push_back(std::move(part));
      } else if (other->closed()) {
        node.parts.push_back(std::move(other->node));
      } else {
        return std::nullopt;
      }
      tree = {std::move(node), size};
    }
    return tree;
  }

  const Ports& ports_;
  const std::function<std::uint64_t(const Dot&)>& device_;
  int large_ = 0, one_ = 0;
};

/// A node along its first parts: what was first, and what each level adds to it.
std::vector<const SummationNode*> spine(const SummationNode& node) {
  if (node.parts.empty()) return {&node};
  std::vector<const SummationNode*> items = spine(node.parts.front());
  for (std::size_t p = 1; p < node.parts.size(); ++p) items.push_back(&node.parts[p]);
  return items;
}

bool binary(const SummationNode& node) {
  return node.parts.empty() ||
         (node.parts.size() == 2 && std::all_of(node.parts.begin(), node.parts.end(), binary));
}

void collect(const SummationNode& node, std::vector<int>& products) {
  if (node.parts.empty()) products.push_back(node.product);
  for (const SummationNode& part : node.parts) collect(part, products);
}

std::vector<int> products_of(const SummationNode& node) {
  std::vector<int> products;
  collect(node, products);
  return products;
}

/// Products first, first + stride, ...; 0 where they are no such run.
int stride_of(const std::vector<int>& products) {
  if (products.size() < 2) return 1;
  const int stride = products[1] - products[0];
  for (std::size_t p = 1; p < products.size(); ++p) {
    if (products[p] - products[p - 1] != stride) return 0;
  }
  return stride;
}

bool is_chain(const SummationNode& node) {
  const auto items = spine(node);
  return binary(node) && std::all_of(items.begin(), items.end(),
                                     [](const SummationNode* n) { return n->parts.empty(); });
}

/// The largest chains of more than one product, or single ones.
void collect_chains(const SummationNode& node, std::vector<const SummationNode*>& chains) {
  if (is_chain(node)) {
    chains.push_back(&node);
    return;
  }
  for (const SummationNode& part : node.parts) collect_chains(part, chains);
}

std::string chain_words(const SummationNode& node) {
  const int stride = stride_of(products_of(node));
  return stride > 0   ? "one product after the other, k ascending"
         : stride < 0 ? "one product after the other, k descending"
                      : "one product after the other, in another order of k";
}

bool pairwise(const SummationNode& node) {
  if (node.parts.empty()) return true;
  return node.parts.size() == 2 && node.parts[0].leaves() == node.parts[1].leaves() &&
         stride_of(products_of(node)) == 1 && pairwise(node.parts[0]) && pairwise(node.parts[1]);
}

/// Products added at once in every step of a fused unit; 0: no such steps.
int step_of(const SummationNode& node) {
  const SummationNode* at = &node;
  const int first = static_cast<int>(node.parts.size()) - 1;
  if (first < 1 || stride_of(products_of(node)) != 1) return 0;
  for (;; at = &at->parts.front()) {
    for (std::size_t p = 1; p < at->parts.size(); ++p) {
      if (!at->parts[p].parts.empty()) return 0;
    }
    const int size = static_cast<int>(at->parts.size());
    if (at->parts.front().parts.empty()) return size == first ? first : 0;
    if (size - 1 != first) return 0;
  }
}

}  // namespace

int SummationNode::leaves() const {
  if (parts.empty()) return 1;
  int count = 0;
  for (const SummationNode& part : parts) count += part.leaves();
  return count;
}

std::optional<SummationNode> read_summation_tree(
    const Ports& ports, const std::function<std::uint64_t(const Dot&)>& device) {
  return TreeReader(ports, device).read();
}

std::string to_string(const SummationNode& node) {
  if (node.parts.empty()) return std::to_string(node.product);
  const bool flat = std::all_of(node.parts.begin(), node.parts.end(),
                                [](const SummationNode& n) { return n.parts.empty(); });
  const char* const brackets = node.parts.size() > 2 ? "{}" : "()";
  std::string text;
  if (is_chain(node) || flat) {
    const std::vector<int> products = products_of(node);
    if (products.size() > 4 && stride_of(products) != 0) {
      text = fmt::format("{} {} .. {}", products[0], products[1], products.back());
    } else {
      text = joined(products, " ");
    }
  } else {
    for (const SummationNode& part : node.parts)
      text += (text.empty() ? "" : " ") + to_string(part);
  }
  return brackets[0] + text + brackets[1];
}

std::string order_words(const SummationNode& node) {
  if (node.parts.empty()) return "one product";
  const int leaves = node.leaves();
  if (static_cast<int>(node.parts.size()) == leaves && leaves > 2) return "all products at once";
  if (is_chain(node)) return chain_words(node);
  if (const int step = step_of(node); step > 1)
    return fmt::format("{} products at once with the sum of those before, k ascending", step);
  if (pairwise(node)) return "pairwise, neighbours first";
  if (const int block = block_of(node); block > 0) {
    return fmt::format("blocks of {} products, one after the other; inside: {}", block,
                       order_words(node.parts.back()));
  }
  std::vector<const SummationNode*> chains;
  collect_chains(node, chains);
  const int count = static_cast<int>(chains.size());
  const bool interleaved = std::all_of(chains.begin(), chains.end(), [&](const SummationNode* n) {
    return n->leaves() == leaves / count && std::abs(stride_of(products_of(*n))) == count;
  });
  if (count == leaves) return "a tree of its own";
  if (interleaved && leaves % count == 0)
    return fmt::format("{} chains over k mod {}, then their sums", count, count);
  const bool blocks = std::all_of(chains.begin(), chains.end(), [&](const SummationNode* n) {
    return n->leaves() == leaves / count && stride_of(products_of(*n)) == 1;
  });
  if (blocks && leaves % count == 0)
    return fmt::format("{} blocks of {} neighbours, each one product after the other", count,
                       leaves / count);
  return "a tree of its own";
}

int block_of(const SummationNode& node) {
  if (node.parts.size() != 2 || stride_of(products_of(node)) != 1) return 0;
  const SummationNode* first = &node;  // the block that begins with product 0
  while (first->parts.size() == 2 && first->parts.back().leaves() > 1)
    first = &first->parts.front();
  const int size = first->leaves();
  if (first == &node || size < 2) return 0;
  for (const SummationNode* at = &node; at != first; at = &at->parts.front()) {
    const int added = at->parts.back().leaves();
    if (at == &node ? added > size : added != size) return 0;
  }
  return size;
}

}  // namespace numemu::oracle
