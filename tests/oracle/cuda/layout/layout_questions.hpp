// Tiles that measure a layout: each element carries the bits of its own index, one bit per tile,
// and D spells out which element arrived.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/oracle/cuda/ask/machine.hpp"

namespace numemu::oracle::recording {

constexpr int kNothing = -1;  ///< no element arrived
constexpr int kGarbled = -2;  ///< D is not one of the two numbers it can be

/// The codes of the numbers 1 and 2.
std::uint64_t one(Element);
std::uint64_t two(Element);

/// Passes that tell `count` elements and "none" apart; whether `index` is one in pass `bit`.
int bits_of(int count);
bool has_bit(int index, int bit);

/// Puts a code, or a one, into the arrays of a batch.
void set_code(std::vector<std::uint8_t>& codes, int place, Element, std::uint64_t code);
void set_a(Batch&, int tile, int row, int kept);
void set_b(Batch&, int tile, int k, int column);
/// Row r of A is one at (r + shift) mod kept alone: D must name the B beside it.
void set_shifted_ones(Batch&, int tile, int shift);

/// Which of its group the kept value `kept` of a row is, by a word of metadata.
int position_of(const Instruction&, int kept, int word);
/// The k that it meets where all words are as in an untouched Batch.
int k_of(const Instruction&, int kept);

/// What came back: index[pattern][row * n + column].
using Indices = std::vector<std::vector<int>>;
using Fill = std::function<void(Batch&, int tile, int pattern, int bit)>;

/// Asks `patterns` questions of `bits` tiles each; D spells an index with the codes low and high.
/// All scales are one.
Indices ask(Machine&, const Instruction&, int patterns, int bits, std::uint64_t low,
            std::uint64_t high, const Fill&);

/// "A[3][5]"; the same for an index into a matrix of `columns` columns, "nothing", "no single
/// element".
std::string element_name(const char* matrix, int row, int column);
std::string index_name(const char* matrix, int index, int columns);

/// The first few of many sentences.
class Complaints {
 public:
  void add(const std::string& text);
  bool empty() const { return count_ == 0; }
  void move_to(std::vector<std::string>& all, const std::string& blamed);

 private:
  std::size_t count_ = 0;
  std::vector<std::string> shown_;
};

}  // namespace numemu::oracle::recording
