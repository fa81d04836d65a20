#include "policies/numerics/operands/sparse_operand.hpp"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/unit/sparse/compress.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::policies {

namespace {

/// The sparse operand of one matrix: kept codes and their places, rows x kept depth.
struct Compressed {
  std::vector<std::byte> kept;
  std::vector<std::uint8_t> index;
};

template <class T>
void compress_rows(const unit::Pattern& pattern, const Format& format, const unit::Gather& gather,
                   const T* source, std::int64_t rows, std::int64_t depth, Compressed& out) {
  std::vector<T> padded, dense(static_cast<std::size_t>(rows * depth));
  if (!gather.padding.identity()) {
    padded.resize(static_cast<std::size_t>(gather.padding.padded_size()));
    unit::pad(gather.padding, source, padded.data(), T{});
    source = padded.data();
  }
  net::for_each_row(rows, depth, [&](std::int64_t r) {
    const T* const line = source + gather.row[r];
    for (std::int64_t k = 0; k < depth; ++k) dense[r * depth + k] = line[gather.depth[k]];
  });
  const std::int64_t kept = rows * unit::kept_depth(pattern, depth);
  out.kept.resize(static_cast<std::size_t>(kept) * sizeof(T));
  out.index.resize(static_cast<std::size_t>(kept));
  unit::compress<T>(pattern, {&format, dense.data(), rows, depth, nullptr},
                    reinterpret_cast<T*>(out.kept.data()), out.index.data());
}

void compress_side(const unit::Pattern& pattern, const Format& format, const unit::Gather& gather,
                   const std::byte* source, std::int64_t rows, std::int64_t depth,
                   Compressed& out) {
  switch (container_bytes(format)) {
    case 1:
      return compress_rows(pattern, format, gather, reinterpret_cast<const std::uint8_t*>(source),
                           rows, depth, out);
    case 2:
      return compress_rows(pattern, format, gather, reinterpret_cast<const std::uint16_t*>(source),
                           rows, depth, out);
    default:
      return compress_rows(pattern, format, gather, reinterpret_cast<const float*>(source), rows,
                           depth, out);
  }
}

}  // namespace

void multiply_sparse(const unit::Unit& unit, const net::Product& p, net::Side sparse,
                     const net::SourceCodes& a, const net::SourceCodes& b,
                     const net::ProductRandom& random, const net::ProductResult& result) {
  net::require_stacks(p);
  const unit::Pattern pattern{unit.description()->sparsity, false};
  const bool left = sparse == net::Side::a;
  const net::ProductSide &kept_side = p.side(sparse), &other_side = p.side(net::other_side(sparse));
  const net::SourceCodes &kept_codes = left ? a : b, &other_codes = left ? b : a;
  const std::int64_t rows = p.rows(sparse), columns = p.rows(net::other_side(sparse));
  net::StackReader kept_reader(kept_side, kept_codes), other_reader(other_side, other_codes);
  net::StackWriter writer(p, result);
  const auto gather = unit::Gather::matrix(rows, unit::kept_depth(pattern, p.k));
  const std::int64_t bytes = result.bytes;
  std::vector<std::byte> turned(left ? 0 : static_cast<std::size_t>(rows * columns * bytes));
  Compressed compressed;
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    if (i == 0 || kept_side.stack.count() > 1) {
      try {
        unit::require_whole_groups(pattern, p.k);
        compress_side(pattern, *kept_codes.format, *kept_side.gather, kept_reader.at(i), rows, p.k,
                      compressed);
      } catch (const Error& error) {
        throw Error(
            fmt::format("layer {}, {}: the {} on unit {}: {}", p.layer, net::to_string(p.kind),
                        net::to_string(kept_side.role), unit.row().name, error.what()),
            error.kind());
      }
    }
    {
      const net::Section section(net::SectionKind::gemm, p.layer, net::to_string(p.kind),
                                 static_cast<double>(p.m * p.n) * static_cast<double>(p.k));
      unit.multiply({.m = rows,
                     .n = columns,
                     .k = p.k,
                     .a = {kept_codes.format, compressed.kept.data(), &gather},
                     .b = {other_codes.format, other_reader.at(i), other_side.gather},
                     .c = nullptr,
                     .d = left ? writer.tile(i, 0, rows, 0, columns) : turned.data(),
                     .kept = compressed.index.data(),
                     .seed = random.seed,
                     .tensor = random.tensor + static_cast<std::uint32_t>(i)});
    }
    if (left) {
      writer.write();
      continue;
    }
    net::for_each_row(p.m, p.n, [&](std::int64_t m) {
      std::byte* const line = writer.at(i, m);
      for (std::int64_t n = 0; n < p.n; ++n)
        std::memcpy(line + n * bytes, turned.data() + (n * columns + m) * bytes,
                    static_cast<std::size_t>(bytes));
    });
  }
}

}  // namespace numemu::policies
