// Reads integer operands: padded codes, converted in one pass, and the runs of their depth.
#include "emu/unit/integer/elements.hpp"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "emu/unit/integer/convert.hpp"
#include "emu/unit/operand.hpp"

namespace numemu::unit {
namespace {

// Keeps released buffers per thread, up to a limit, and hands out the smallest that is enough.

/// As much as two products of 1024 x 1024 digits need; more goes back to the system.
constexpr std::int64_t kKeptBytes = std::int64_t{16} << 20;

}  // namespace

struct Scratch::Kept {
  std::vector<std::pair<std::int64_t, Memory>> buffers;
  std::int64_t bytes = 0;
};

Scratch::Kept& Scratch::kept() {
  thread_local Kept buffers;
  return buffers;
}

Scratch::Scratch(std::int64_t bytes) : bytes_(bytes) {
  Kept& all = kept();
  auto best = all.buffers.end();
  for (auto buffer = all.buffers.begin(); buffer != all.buffers.end(); ++buffer) {
    if (buffer->first < bytes) continue;
    if (best == all.buffers.end() || buffer->first < best->first) best = buffer;
  }
  if (best == all.buffers.end()) {
    memory_ = hwy::AllocateAligned<std::uint8_t>(static_cast<std::size_t>(bytes));
    return;
  }
  std::swap(*best, all.buffers.back());
  bytes_ = all.buffers.back().first;
  memory_ = std::move(all.buffers.back().second);
  all.buffers.pop_back();
  all.bytes -= bytes_;
}

Scratch::~Scratch() {
  if (memory_ == nullptr) return;
  Kept& all = kept();
  if (all.bytes + bytes_ > kKeptBytes) return;
  all.bytes += bytes_;
  all.buffers.emplace_back(bytes_, std::move(memory_));
}

Scratch::Scratch(Scratch&& other) noexcept
    : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

namespace {

/// Codes a thread converts at a time; below this no parallel region is opened.
constexpr std::int64_t kPart = std::int64_t{1} << 17;

void find_runs(Elements& e) {
  const std::int64_t per_chunk = kChunkBytes / e.size;
  for (std::int64_t begin = 0; begin < e.depth; begin += per_chunk) {
    e.chunk_runs.push_back(static_cast<std::int32_t>(e.runs.size()));
    const std::int64_t end = std::min(e.depth, begin + per_chunk);
    for (std::int64_t k = begin; k < end;) {
      const std::int64_t first = k++;
      while (k < end && e.depths[k] == e.depths[k - 1] + 1) ++k;
      e.runs.push_back({std::int64_t{e.depths[first]} * e.size,
                        static_cast<int>(first - begin) * e.size,
                        static_cast<int>(k - first) * e.size});
    }
  }
  e.chunk_runs.push_back(static_cast<std::int32_t>(e.runs.size()));
}

Elements empty_elements(const Operand& operand, std::int64_t rows, std::int64_t depth, int size,
                        std::int64_t count) {
  Elements e;
  e.size = size;
  e.row = operand.gather->row.data();
  e.depths = operand.gather->depth.data();
  e.rows = rows;
  e.depth = depth;
  const std::int64_t bytes = count * size;
  e.bytes = Scratch(bytes + kChunkBytes);
  std::fill_n(e.bytes.get() + bytes, kChunkBytes, std::uint8_t{0});
  return e;
}

/// The codes of an operand with its padding; read in place where there is none.
template <class T>
struct Codes {
  Codes(const Operand& operand, std::int64_t rows, std::int64_t depth)
      : codes(static_cast<const T*>(operand.codes)), count(source_size(operand, rows, depth)) {
    const Padding& padding = operand.gather->padding;
    if (padding.identity()) return;
    count = padding.padded_size();
    storage = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
    pad(padding, codes, storage.get(), T{0});
    codes = storage.get();
  }

  /// Calls body(first, count) for parts of the codes, on several threads where they are many.
  template <class Body>
  void in_parts(const Body& body) const {
#pragma omp parallel for if (count > kPart && !omp_in_parallel())
    for (std::int64_t i = 0; i < count; i += kPart) body(i, std::min(kPart, count - i));
  }

  const T* codes;
  std::int64_t count;
  std::unique_ptr<T[]> storage;
};

template <class T>
Elements convert(const Operand& operand, std::int64_t rows, std::int64_t depth, int size,
                 const ElementRule& rule) {
  const Codes<T> source(operand, rows, depth);
  Elements e = empty_elements(operand, rows, depth, size, source.count);
  source.in_parts([&](std::int64_t first, std::int64_t count) {
    convert_codes(source.codes + first, count, rule, size, e.bytes.get() + first * size);
  });
  find_runs(e);
  return e;
}

}  // namespace

Elements read_elements(const Operand& operand, std::int64_t rows, std::int64_t depth, int size,
                       const ElementRule& rule) {
  return *container_of(*operand.format) == Container::bytes
             ? convert<std::uint8_t>(operand, rows, depth, size, rule)
             : convert<std::uint16_t>(operand, rows, depth, size, rule);
}

std::vector<Elements> read_planes(const Operand& operand, std::int64_t rows, std::int64_t depth,
                                  const std::vector<std::vector<std::uint8_t>>& tables) {
  const Codes<std::uint8_t> source(operand, rows, depth);
  std::vector<Elements> planes;
  for (const std::vector<std::uint8_t>& table : tables) {
    Elements e = empty_elements(operand, rows, depth, 1, source.count);
    source.in_parts([&](std::int64_t first, std::int64_t count) {
      look_up_bytes(source.codes + first, count, table.data(), e.bytes.get() + first);
    });
    find_runs(e);
    planes.push_back(std::move(e));
  }
  return planes;
}

}  // namespace numemu::unit
