#include "experiments/mask_diversity/mask_census.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "formats/error.hpp"

namespace numemu::experiments {

using policies::factorial;

namespace {

/// The columns of some rows in their order: one byte each, a row's bit below those of the rows
/// before it.
using Columns = std::array<std::uint8_t, kMostKindTile>;

struct Order {
  Columns columns = {};
  unsigned used = 0;  ///< bit r: row r is in the order
};

/// What is left of an order when columns may be permuted: the columns sorted, the largest first.
std::uint64_t word_of(Columns columns, int m) {
  std::sort(columns.begin(), columns.begin() + m, std::greater<>());
  std::uint64_t word = 0;
  for (int j = 0; j < m; ++j) word = word << 8 | columns[static_cast<std::size_t>(j)];
  return word;
}

/// Column permutations that change nothing: of equal columns among themselves.
std::int64_t equal_columns(Columns columns, int m) {
  std::sort(columns.begin(), columns.begin() + m);
  std::int64_t permutations = 1;
  for (int j = 0, run = 0; j < m; ++j) {
    run = j > 0 && columns[j] == columns[j - 1] ? run + 1 : 1;
    permutations *= run;
  }
  return permutations;
}

}  // namespace

MaskKind kind_of(std::uint64_t mask, int m) {
  if (m < 1 || m > kMostKindTile) {
    throw Error("mask kinds: expected tiles of 1 to " + std::to_string(kMostKindTile) +
                " rows, not " + std::to_string(m));
  }
  // The canonical mask is the one with the largest word. A prefix of its rows has the largest word
  // of all prefixes, so that others need not be followed.
  std::vector<Order> orders(1), next;
  std::uint64_t best = 0;
  for (int depth = 0; depth < m; ++depth) {
    next.clear();
    best = 0;
    for (const Order& order : orders) {
      for (int r = 0; r < m; ++r) {
        if (order.used >> r & 1U) continue;
        Order longer = order;
        longer.used |= 1U << r;
        for (int j = 0; j < m; ++j) {
          longer.columns[j] =
              static_cast<std::uint8_t>(order.columns[j] << 1 | (mask >> (r * m + j) & 1U));
        }
        const std::uint64_t word = word_of(longer.columns, m);
        if (word < best) continue;
        if (word > best) next.clear();
        best = word;
        next.push_back(longer);
      }
    }
    orders.swap(next);
  }
  // Row orders that end at the canonical mask differ by symmetries of the mask; each goes with the
  // permutations of its equal columns.
  const std::int64_t symmetries =
      static_cast<std::int64_t>(orders.size()) * equal_columns(orders[0].columns, m);
  const auto orders_of_lines = factorial<std::int64_t>(m);
  return {best, orders_of_lines * orders_of_lines / symmetries};
}

namespace {

constexpr std::int64_t kWordBits = 64;

int words_of(std::int64_t piece) { return static_cast<int>((piece + kWordBits - 1) / kWordBits); }

/// The mask as bits, the first element lowest; returns how many are kept.
std::int64_t pack(const std::uint8_t* keep, std::int64_t piece, std::uint64_t* words) {
  std::int64_t kept = 0;
  for (std::int64_t first = 0; first < piece; first += kWordBits) {
    const std::int64_t bits = std::min(kWordBits, piece - first);
    std::uint64_t word = 0;
    for (std::int64_t i = 0; i < bits; ++i) {
      const bool one = keep[first + i] != 0;
      word |= std::uint64_t{one} << i;
      kept += one;
    }
    *words++ = word;
  }
  return kept;
}

std::int64_t checked_piece(std::int64_t piece) {
  if (piece < 1 || piece > kMostPiece) {
    throw Error("mask census: expected pieces of 1 to " + std::to_string(kMostPiece) +
                " elements, not " + std::to_string(piece));
  }
  return piece;
}

using Words = std::array<std::uint64_t, 1 + kMostPiece / kWordBits>;

}  // namespace

KeyCounter::KeyCounter(int width) : width_(width), slots_(16) {}

std::size_t KeyCounter::slot_of(const std::uint64_t* key) const {
  // Each word through the finalizer of splitmix64 (Steele, Lea and Flood 2014).
  std::uint64_t hash = 0;
  for (int w = 0; w < width_; ++w) {
    hash += key[w] + 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
    hash ^= hash >> 31;
  }
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != 0 && !std::equal(key, key + width_, this->key(slots_[slot] - 1)))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void KeyCounter::add(const std::uint64_t* key) {
  std::size_t slot = slot_of(key);
  if (slots_[slot] != 0) {
    ++counts_[slots_[slot] - 1];
    return;
  }
  if (2 * (counts_.size() + 1) > slots_.size()) {
    grow();
    slot = slot_of(key);
  }
  keys_.insert(keys_.end(), key, key + width_);
  counts_.push_back(1);
  slots_[slot] = static_cast<std::uint32_t>(counts_.size());
}

void KeyCounter::grow() {
  slots_.assign(slots_.size() * 4, 0);
  for (std::size_t i = 0; i < counts_.size(); ++i)
    slots_[slot_of(key(static_cast<std::int64_t>(i)))] = static_cast<std::uint32_t>(i + 1);
}

MaskCensus::MaskCensus(std::int64_t piece)
    : piece_(checked_piece(piece)), masks_(words_of(piece)) {}

void MaskCensus::add(const std::uint8_t* keep, std::int64_t pieces) {
  Words words;
  for (std::int64_t i = 0; i < pieces; ++i) {
    kept_ += pack(keep + i * piece_, piece_, words.data());
    masks_.add(words.data());
  }
  pieces_ += pieces;
}

double MaskCensus::kept() const {
  if (pieces_ == 0) return 0;
  return static_cast<double>(kept_) / static_cast<double>(pieces_ * piece_);
}

double MaskCensus::bits_per_element() const {
  return entropy().corrected / static_cast<double>(piece_);
}

double flip_rate(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n) {
  std::int64_t flips = 0;
  for (std::int64_t i = 0; i < n; ++i) flips += (a[i] != 0) != (b[i] != 0);
  return n == 0 ? 0 : static_cast<double>(flips) / static_cast<double>(n);
}

MaskHistory::MaskHistory(std::int64_t piece, std::int64_t elements)
    : piece_(checked_piece(piece)), elements_(elements), seen_(1 + words_of(piece)) {
  if (elements < 0 || elements % piece != 0) {
    throw Error("mask history: expected a multiple of " + std::to_string(piece) +
                " elements, found " + std::to_string(elements));
  }
}

void MaskHistory::add(const std::uint8_t* keep) {
  if (masks_ > 0) flips_.push_back(flip_rate(last_.data(), keep, elements_));
  last_.assign(keep, keep + elements_);
  Words words;
  for (std::int64_t i = 0; i < pieces(); ++i) {
    words[0] = static_cast<std::uint64_t>(i);
    pack(keep + i * piece_, piece_, words.data() + 1);
    seen_.add(words.data());
  }
  ++masks_;
}

double MaskHistory::distinct_per_piece() const {
  return pieces() == 0 ? 0 : static_cast<double>(seen_.distinct()) / static_cast<double>(pieces());
}

}  // namespace numemu::experiments
