// Eigen's float product, for comparison; its bits depend on the CPU.
#include "emu/unit/host_eigen.hpp"

#include <Eigen/Core>
#include <limits>
#include <vector>

#include "emu/unit/described_unit.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Rows of A gathered at a time, so that a convolution is never a whole matrix in memory.
constexpr TileShape kEigenSlab{.rows = 512, .lanes = std::numeric_limits<std::int64_t>::max() / 2};

Matrix gathered(const Source<float>& source, std::int64_t first, std::int64_t rows,
                std::int64_t k) {
  Matrix matrix(rows, k);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* values = source.values + source.row[first + r];
    for (std::int64_t j = 0; j < k; ++j) matrix(r, j) = values[source.depth[j]];
  }
  return matrix;
}

class HostEigenF32 final : public Unit {
 public:
  const UnitRow& row() const override { return row_; }
  const UnitDescription* description() const override { return nullptr; }
  bool accepts_a(const Format& format) const override {
    return find_unit("neutral.f32.sequential").accepts_a(format);
  }
  bool accepts_b(const Format& format) const override { return accepts_a(format); }
  std::string operand_rule() const override {
    return find_unit("neutral.f32.sequential").operand_rule();
  }

  void multiply(const Gemm& g) const override {
    check_product(*this, g);
    if (g.m == 0 || g.n == 0) return;
    const Source<float> a = decode_floats(g.a, g.m, g.k), b = decode_floats(g.b, g.n, g.k);
    const Matrix whole_b = gathered(b, 0, g.n, g.k);
    const auto* c = static_cast<const float*>(g.c);
    auto* d = static_cast<float*>(g.d);
    // A tile is whole rows of D: the driver's rows are the rows of A here, its lanes one.
    for_each_tile(g.m, 1, g.n * g.k, kEigenSlab, [&](const Tile& tile) {
      const std::int64_t rows = tile.row_end - tile.row_begin;
      Eigen::Map<Matrix> out(d + tile.row_begin * g.n, rows, g.n);
      out.noalias() = gathered(a, tile.row_begin, rows, g.k) * whole_b.transpose();
      if (c != nullptr) out += Eigen::Map<const Matrix>(c + tile.row_begin * g.n, rows, g.n);
    });
  }

  /// No specification exists: the definition it should come near.
  void multiply_reference(const Gemm& g) const override {
    check_product(*this, g);
    find_unit("neutral.f32.sequential").multiply_reference(g);
  }

 private:
  UnitRow row_{.name = "host.eigen.f32",
               .alias = "",
               .operand = "any",
               .result = "float32",
               .accumulation =
                   "whatever Eigen's float product does on this CPU, then one addition "
                   "of C: for comparison only",
               .grade = Grade::not_reproducible,
               .source = "Eigen 3.4, Core/products/GeneralMatrixMatrix.h",
               .modifiers = {}};
};

}  // namespace

std::unique_ptr<Unit> make_host_eigen_f32() { return std::make_unique<HostEigenF32>(); }

}  // namespace numemu::unit
