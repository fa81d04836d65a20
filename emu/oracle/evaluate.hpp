// The results that records must have: each subject computed exactly, or by the unit's reference.
#pragma once
#include <climits>
#include <cstdint>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/unit/gather.hpp"
#include "emu/unit/kulisch.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/unit.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/value.hpp"

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
  /// D and its exception flags, of registers with such `ends`, and how they came about. Throws
  /// Error as gemm().
  unit::Outcome outcome(const Records&, std::int64_t i, const unit::ShortEnds* ends = nullptr,
                        unit::Trace* trace = nullptr);
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

/// Computes the exact results of records of one subject, one after another. Of a unit: the sum of
/// its products, as scaled, and c, whatever the unit does with them; its treatment of subnormal
/// inputs and its input rounding are left out.
class ExactSum {
 public:
  ExactSum(const Subject&, const Layout&);

  /// `invalid`: a signalling NaN, or NaN made of numbers. A sum of zeros has the sign that the
  /// rounding gives it.
  struct Result : ExactResult {
    /// The largest exponent of a leading bit among the products and c; INT_MIN where all are zero
    /// or special.
    int largest_term = INT_MIN;
  };
  /// Throws Error naming the field for a code that its format does not have.
  Result of(const Records&, std::int64_t i);

 private:
  Value element(const Records&, int field, std::int64_t at, std::int64_t i) const;
  void add_product(const Value& a, const Value& b, Result&);
  void add(const Value& c, Result&);
  /// The sum so far.
  void finish(bool any_nan, Result&) const;
  /// A quotient, choice or comparison.
  ExactResult exact_of(const Value& a, const Value& b);
  /// Of operations without products.
  Result of_few(const Records&, std::int64_t i);
  /// The factor a of product p, times both of its scales.
  Value scaled(const Records&, std::int64_t i, std::int64_t p, Value a) const;

  const Subject subject_;
  const Layout layout_;
  const OperationRow& row_;
  int a_, b_, c_, scale_a_, scale_b_, kept_;  ///< fields, -1 where there are none
  unit::Kulisch sum_;
};

/// The exceptions of the subject's operation. An integer that is out of range raises NV alone (IEEE
/// 754-2019, 5.8 and 7.1, as RISC-V), where encode() counts an overflow; a division by zero raises
/// DZ alone, whatever stands for infinity in the format.
std::uint8_t flags_of(const Subject&, const ExactResult&, const Encoded&);

/// What is wrong with the inputs of a record: "record 5: in: 0x7 is not a code of ...".
class RecordError : public Error {
 public:
  RecordError(std::int64_t number, const std::string& what);
  std::int64_t record;  ///< its number in the batch
  std::string text;     ///< without that number
};

/// Throws RecordError for a code that its field cannot have; of inputs alone, or of results, too.
void require_codes(const Layout&, const Records&, bool results);

/// Writes the fields that are results, from the others: out or d, and flags. The records are of
/// layout_of(subject). Single-threaded, reentrant. Throws RecordError for codes that their format
/// does not have, and for metadata that is not a legal pattern.
/// `ends`: of a unit, those of its registers.
void evaluate(const Subject&, Records&, const unit::ShortEnds* ends = nullptr);

/// evaluate() without flags, by the unit's fast paths where it has some: the same bits. Large
/// batches use all threads, unless already inside a parallel region.
void evaluate_without_flags(const Subject&, const Layout&, Records&);

/// The exact result of record i before its rounding: the number, the product, the sum of all
/// products and c. Of units, too: what an exact unit would round. At most 64 leading bits and a
/// sticky bit.
Value exact_result(const Subject&, const Records&, std::int64_t i);

}  // namespace numemu::oracle
