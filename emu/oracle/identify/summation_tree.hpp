// The order in which an unknown unit adds its products, read by products that hide others.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/dots/dots.hpp"

namespace numemu::oracle {

/// Products added at once, or the sums of smaller nodes; a leaf is one product.
struct SummationNode {
  int product = -1;  ///< of a leaf
  std::vector<SummationNode> parts;

  int leaves() const;
};

/// The tree of additions of the products: a large product at i and its opposite at j hide all that
/// is added to either before they meet, and the sum counts the others (FPRev, arXiv 2411.00442).
/// Asks between K and K^2 / 2 dots. Nothing where the formats cannot express the numbers, or the
/// answers fit no tree.
std::optional<SummationNode> read_summation_tree(
    const Ports&, const std::function<std::uint64_t(const Dot&)>& device);

/// Round brackets hold what is added one after the other, braces what is added at once:
/// "((0 2 .. 30) (1 3 .. 31))", "{{0 1 .. 15} 16 17 .. 31}".
std::string to_string(const SummationNode&);
/// In words: "one after the other, k ascending", "4 chains over k mod 4, then added", "blocks of 8
/// products", "pairwise", "all at once", "another tree".
std::string order_words(const SummationNode&);

/// Size of the neighbouring blocks of products whose sums are added one after the other, the last
/// block perhaps shorter; 0 where there are none.
int block_of(const SummationNode&);

}  // namespace numemu::oracle
