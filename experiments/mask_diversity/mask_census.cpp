#include "experiments/mask_diversity/mask_census.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "formats/error.hpp"

namespace numemu::experiments {
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
