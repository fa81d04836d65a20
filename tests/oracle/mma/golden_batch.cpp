// Runs a batch through a unit, threads over its products, and counts the bits that agree.
#include "tests/oracle/mma/golden_batch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle::mma {
namespace {

constexpr std::int64_t kBlock = 32;

struct Widths {
  std::int64_t a = 0, b = 0, c = 0, d = 0, scale_a = 0, scale_b = 0;  ///< bytes of one product
};

std::int64_t bytes_each(const std::string& all, const Batch& batch) {
  return batch.count == 0 ? 0 : static_cast<std::int64_t>(all.size()) / batch.count;
}

Widths widths_of(const Batch& b) {
  return {bytes_each(b.a, b), bytes_each(b.b, b),       bytes_each(b.c, b),
          bytes_each(b.d, b), bytes_each(b.scale_a, b), bytes_each(b.scale_b, b)};
}

const std::uint8_t* scales(const std::string& bytes, std::int64_t offset) {
  return bytes.empty() ? nullptr : reinterpret_cast<const std::uint8_t*>(bytes.data()) + offset;
}

/// The products from `first` on as one product of m x n, everything but C and D in place.
unit::Gemm gemm_at(const Batch& batch, const Widths& w, std::int64_t first, std::int64_t m,
                   std::int64_t n, const unit::Gather& rows, const unit::Gather& columns) {
  unit::Gemm g;
  g.m = m;
  g.n = n;
  g.k = batch.k;
  g.a = {batch.a_format, batch.a.data() + first * w.a, &rows};
  g.b = {batch.b_format, batch.b.data() + first * w.b, &columns};
  g.scale_a = scales(batch.scale_a, first * w.scale_a);
  g.scale_b = scales(batch.scale_b, first * w.scale_b);
  return g;
}

/// Whole products on each thread, so that a unit opens no parallel region of its own.
template <class Action>
void over_threads(std::int64_t count, const Action& action) {
  std::string error;
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      action(i);
    } catch (const Error& caught) {
#pragma omp critical
      error = caught.what();
    }
  }
  if (!error.empty()) throw Error(error);
}

void run_each(const Batch& batch, const unit::Unit& unit, bool reference, std::string& d) {
  const Widths w = widths_of(batch);
  const auto rows = unit::Gather::matrix(batch.m, batch.k);
  const auto columns = unit::Gather::matrix(batch.n, batch.k, batch.b_is_k_by_n);
  const auto one = [&](std::int64_t i) {
    unit::Gemm g = gemm_at(batch, w, i, batch.m, batch.n, rows, columns);
    g.c = batch.c.data() + i * w.c;
    g.d = d.data() + i * w.d;
    reference ? unit.multiply_reference(g) : unit.multiply(g);
  };
  over_threads(batch.count, one);
}

/// Dot i of a block is element (i, i) of the product of all its A and all its B.
void run_block(const Batch& batch, const unit::Unit& unit, const Widths& w, std::int64_t first,
               std::int64_t size, std::string& d) {
  const auto lines = unit::Gather::matrix(size, batch.k);
  unit::Gemm g = gemm_at(batch, w, first, size, size, lines, lines);
  std::string c(size * size * w.c, 0), out(size * size * w.d, 0);
  for (std::int64_t e = 0; e < size * size; ++e)
    std::memcpy(&c[e * w.c], &batch.c[(first + e / size) * w.c], w.c);
  g.c = c.data();
  g.d = out.data();
  unit.multiply(g);
  for (std::int64_t i = 0; i < size; ++i)
    std::memcpy(&d[(first + i) * w.d], &out[i * (size + 1) * w.d], w.d);
}

std::uint64_t element(const std::string& bytes, std::int64_t index, std::int64_t width) {
  std::uint64_t code = 0;
  std::memcpy(&code, bytes.data() + index * width, width);
  return code;
}

bool is_nan(const Format* format, std::uint64_t code) {
  return format != nullptr && decode(*format, code).kind == Class::nan;
}

}  // namespace

const char* to_string(Way way) {
  return way == Way::reference ? "reference" : way == Way::fast ? "fast" : "fast, blocks";
}

std::string computed(const Batch& batch, Way way) {
  const unit::Unit& unit = unit::find_unit(batch.unit);
  if (unit.row().name != batch.unit)
    throw Error(batch.unit + ": expected the full name " + unit.row().name);
  std::string d(batch.d.size(), 0);
  if (way != Way::fast_blocks) {
    run_each(batch, unit, way == Way::reference, d);
    return d;
  }
  if (batch.m != 1 || batch.n != 1) throw Error("expected single dots");
  const Widths w = widths_of(batch);
  over_threads((batch.count + kBlock - 1) / kBlock, [&](std::int64_t block) {
    const std::int64_t first = block * kBlock;
    run_block(batch, unit, w, first, std::min(kBlock, batch.count - first), d);
  });
  return d;
}

Tally compare(const Batch& batch, Way way, NanMatch nan) {
  Tally tally;
  tally.records = batch.count * batch.m * batch.n;
  std::string got;
  try {
    got = computed(batch, way);
  } catch (const Error& error) {
    tally.first = error.what();
    return tally;
  }
  const std::int64_t width = tally.records == 0 ? 0 : std::ssize(batch.d) / tally.records;
  for (std::int64_t i = 0; i < tally.records; ++i) {
    const std::uint64_t x = element(got, i, width), y = element(batch.d, i, width);
    const bool both_nan = is_nan(batch.result, x) && is_nan(batch.result, y);
    tally.nan += is_nan(batch.result, y);
    if (x == y || (nan == NanMatch::any && both_nan)) {
      ++tally.matches;
    } else if (tally.first.empty()) {
      char text[96];
      std::snprintf(text, sizeof text, "element %lld of product %lld: %0*llx, expected %0*llx",
                    static_cast<long long>(i % (batch.m * batch.n)),
                    static_cast<long long>(i / (batch.m * batch.n)), static_cast<int>(2 * width),
                    static_cast<unsigned long long>(x), static_cast<int>(2 * width),
                    static_cast<unsigned long long>(y));
      tally.first = text;
    }
  }
  return tally;
}

}  // namespace numemu::oracle::mma
