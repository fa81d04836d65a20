// One output of a unit from the columns of a record, by the unit's reference.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/unit/gather.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::oracle {

enum class Path : std::uint8_t { reference, fast };

/// Computes D of records of one subject, one after another. Units of descriptions that differ in
/// their arithmetic alone may share the records.
class UnitDot {
 public:
  /// The unit of the subject, or `description` in its place, which must outlive this.
  UnitDot(const Subject&, const Layout&, const unit::UnitDescription* description = nullptr);
  /// Record i as the product of one output; valid until the next call. Throws Error for metadata
  /// that is not a legal pattern.
  const unit::Gemm& gemm(const Records&, std::int64_t i);
  /// D and its exception flags, of registers with such `ends`. Throws Error as gemm().
  unit::Outcome outcome(const Records&, std::int64_t i, const unit::ShortEnds* ends = nullptr);
  std::uint64_t of(const Records& records, std::int64_t i) { return outcome(records, i).code; }

  /// D of all records as one batch, over threads unless already inside a parallel region. No flags;
  /// a stochastic register draws as for products with seed 0. Fields without a format hold what is
  /// in the containers. Throws Error as Unit::multiply() does.
  void multiply(Records&, Path);

 private:
  /// The codes of one field, in containers as units read them.
  struct Container {
    int field = -1;
    const Format* format = nullptr;
    int bytes = 1;
    std::int64_t count = 0;           ///< codes of a record
    std::vector<std::uint64_t> data;  ///< aligned for any container
    /// Those of n records; nullptr where the layout has no such field.
    const void* of(const Records&, std::int64_t i, std::int64_t n = 1);
  };
  static Container container(const Layout&, std::string_view name);
  unit::Gemm gemm(const Records&, std::int64_t i, std::int64_t n);

  Subject subject_;
  const unit::UnitDescription* description_;
  Container a_, b_, c_, scale_a_, scale_b_, kept_, d_;
  int random_;
  unit::Gather a_row_, b_row_;
  std::vector<std::uint32_t> words_;
  unit::Gemm gemm_;
};

}  // namespace numemu::oracle
