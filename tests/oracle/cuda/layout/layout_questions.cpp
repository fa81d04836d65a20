// Questions in tiles, answers in indices.
#include "tests/oracle/cuda/layout/layout_questions.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::size_t kShown = 4;
constexpr int kFirstKept = 0b0100;  ///< the words of an untouched Batch

std::uint8_t* code_at(std::vector<std::uint8_t>& codes, int place, Element e) {
  return codes.data() + static_cast<std::size_t>(place) * static_cast<std::size_t>(info(e).bytes);
}

}  // namespace

std::uint64_t one(Element e) {
  if (is_integer(e)) return 1;
  const int fraction = e == Element::tf32 ? 23 : info(e).mantissa_bits;  // in a float32 container
  return static_cast<std::uint64_t>(info(e).bias) << fraction;
}

std::uint64_t two(Element e) { return one(e) + (std::uint64_t{1} << info(e).mantissa_bits); }

int bits_of(int count) {
  int bits = 0;
  while ((count >> bits) != 0) ++bits;
  return bits;
}
bool has_bit(int index, int bit) { return ((index + 1) >> bit & 1) != 0; }

void set_code(std::vector<std::uint8_t>& codes, int place, Element e, std::uint64_t code) {
  store_code(code_at(codes, place, e), info(e).bytes, code);
}
void set_a(Batch& tiles, int tile, int row, int kept) {
  const Instruction& i = *tiles.instruction;
  set_code(tiles.a, (tile * i.m + row) * i.kept() + kept, i.a, one(i.a));
}
void set_b(Batch& tiles, int tile, int k, int column) {
  const Instruction& i = *tiles.instruction;
  set_code(tiles.b, (tile * i.n + column) * i.k + k, i.b, one(i.b));
}

void set_shifted_ones(Batch& tiles, int tile, int shift) {
  const Instruction& i = *tiles.instruction;
  for (int row = 0; row < i.m; ++row) set_a(tiles, tile, row, (row + shift) % i.kept());
}

int position_of(const Instruction& i, int kept, int word) {
  if (i.sparsity == Sparsity::one_of_two) return word >> 3 & 1;
  if (i.sparsity == Sparsity::two_of_four) return word >> (2 * (kept % 2)) & 3;
  return 2 * (word >> (2 * (kept % 4 / 2)) & 3) + kept % 2;
}
int k_of(const Instruction& i, int kept) {
  if (i.sparsity == Sparsity::dense) return kept;
  return kept / (i.group() / 2) * i.group() + position_of(i, kept, kFirstKept);
}

Indices ask(Machine& machine, const Instruction& i, int patterns, int bits, std::uint64_t low,
            std::uint64_t high, const Fill& fill) {
  Batch tiles(i, patterns * bits);
  for (std::uint8_t& scale : tiles.scale_a) scale = static_cast<std::uint8_t>(one(i.scale));
  for (std::uint8_t& scale : tiles.scale_b) scale = static_cast<std::uint8_t>(one(i.scale));
  for (int tile = 0; tile < tiles.count; ++tile) fill(tiles, tile, tile / bits, tile % bits);
  machine.run(tiles);
  Indices indices(static_cast<std::size_t>(patterns));
  for (int tile = 0; tile < tiles.count; ++tile) {
    std::vector<int>& index = indices[static_cast<std::size_t>(tile / bits)];
    index.resize(static_cast<std::size_t>(i.m * i.n), 0);
    for (int place = 0; place < i.m * i.n; ++place) {
      int& sum = index[static_cast<std::size_t>(place)];
      const std::uint64_t code =
          load_code(code_at(tiles.d, tile * i.m * i.n + place, i.d), info(i.d).bytes);
      if (code != low && code != high)
        sum = kGarbled;
      else if (sum != kGarbled && code == high)
        sum += 1 << tile % bits;
    }
  }
  for (std::vector<int>& index : indices)
    for (int& sum : index)
      if (sum != kGarbled) sum -= 1;  // 0, no bit at all: kNothing
  return indices;
}

std::string element_name(const char* matrix, int row, int column) {
  return std::string(matrix) + "[" + std::to_string(row) + "][" + std::to_string(column) + "]";
}
std::string index_name(const char* matrix, int index, int columns) {
  if (index == kNothing) return "nothing";
  if (index == kGarbled) return "no single element";
  return element_name(matrix, index / columns, index % columns);
}

void Complaints::add(const std::string& text) {
  if (count_++ < kShown) shown_.push_back(text);
}

void Complaints::move_to(std::vector<std::string>& all, const std::string& blamed) {
  for (const std::string& text : shown_) all.push_back(blamed + ": " + text);
  if (count_ > kShown)
    all.push_back(blamed + ": and " + std::to_string(count_ - kShown) + " more of this kind");
}

}  // namespace numemu::oracle::recording
