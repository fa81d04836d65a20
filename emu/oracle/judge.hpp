// The judge of all results made elsewhere: batches of records from a file, from memory, from arrays
// or from a recording, held against a rule.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/format.hpp"

namespace numemu::oracle {

/// Which NaN results count as equal.
enum class NanMatch : std::uint8_t {
  any,        ///< every NaN equals every other
  canonical,  ///< where a NaN is expected, the canonical one is
  payload,    ///< every bit as expected
};
enum class ZeroSign : std::uint8_t { strict, ignore };

struct Tolerance {
  NanMatch nan = NanMatch::any;
  ZeroSign zero = ZeroSign::strict;
  std::uint64_t ulps = 0;  ///< finite results that differ by at most this count as equal
  /// Integers of conversions that raise NV, as expected and as given, count as equal: IEEE 754 says
  /// nothing of them.
  bool any_invalid_integer = false;
};

/// How two results differ, as far as the two codes show it; the first that applies.
enum class Mismatch : std::uint8_t {
  none,
  unknown,     ///< digits X or Z
  nan,         ///< NaN against a number that is not the largest, or against another NaN
  saturation,  ///< the largest finite number against infinity, or against NaN
  infinity,    ///< infinity against another number
  zero_sign,   ///< +0 against -0
  flush,       ///< zero against a subnormal or the smallest normal number
  sign,        ///< the same magnitude
  one_ulp,
  ulps,   ///< more than one
  flags,  ///< equal results, other exception flags
};
inline constexpr int kMismatches = 11;
/// "X or Z digits", "sign of zero", ...
std::string_view name_of(Mismatch);

struct CodeComparison {
  Mismatch mismatch = Mismatch::none;
  /// Codes between the two in the order of their numbers, +0 and -0 as one; infinity lies one
  /// beyond the largest number. Of a result that is a narrower register, codes of that, a part
  /// counting as one. None where either is NaN or unknown.
  std::optional<std::uint64_t> ulps = 0;
  bool both_nan = false;  ///< two NaN of other bits
};

/// How codes of one kind are compared: of a format, or two's complement of `bits` bits.
class Comparer {
 public:
  Comparer(const Format*, int bits, Tolerance);
  /// The machine's own canonical NaN.
  void set_canonical_nan(std::uint64_t code) { canonical_ = code; }
  /// Results are those of a register with so many mantissa bits fewer.
  void set_narrower_by(int mantissa_bits) { narrower_ = mantissa_bits; }
  int narrower_by() const { return narrower_; }
  /// A comparer like this one with a tolerance of no ulps.
  Comparer without_ulps() const {
    Comparer exact = *this;
    exact.tolerance_.ulps = 0;
    return exact;
  }
  CodeComparison compare(std::uint64_t want, std::uint64_t got) const {
    if (want == got && (tolerance_.nan != NanMatch::canonical || want == canonical_)) return {};
    return compare_unequal(want, got);
  }

 private:
  enum class Sort : std::uint8_t { number, infinity, nan };
  Sort sort(std::uint64_t code) const;
  /// In the order of the numbers, both zeros 0.
  std::int64_t place(std::uint64_t code) const;
  CodeComparison compare_unequal(std::uint64_t want, std::uint64_t got) const;
  Mismatch finite_mismatch(std::int64_t want, std::int64_t got, std::uint64_t ulps) const;

  const Format* format_;
  Tolerance tolerance_;
  std::uint64_t canonical_ = 0, sign_ = 0, largest_ = 0, smallest_normal_ = 0;
  int bits_ = 0, narrower_ = 0;
};

/// Counts, of all records or of those of a class.
struct Tally {
  std::int64_t records = 0;
  std::int64_t tolerated = 0;  ///< of the matches: within the tolerance, not equal
  std::array<std::int64_t, kMismatches> by_mismatch{};  ///< [none]: matches
  /// Finite mismatches that are 2^i to 2^(i+1) - 1 ulps apart.
  std::array<std::int64_t, 64> by_ulps{};
  std::int64_t both_nan = 0;  ///< of the mismatches

  std::int64_t matches() const { return by_mismatch[0]; }
  std::int64_t mismatches() const { return records - matches(); }
  void add(const CodeComparison&);
};

/// One mismatch.
struct MismatchedRecord {
  CodeComparison comparison;
  Sample one;
};

/// The records of one class.
struct ClassTally {
  std::string name;  ///< "" where a record has none
  Tally tally;
  std::optional<MismatchedRecord> first;
};

/// How a rule fares on records.
struct Judged {
  std::string family, name;  ///< family and name of the rule; "": the subject's own
  /// Of a rule that was not compared: why no input tells it apart.
  std::string_view equal = {};
  Tally tally = {};
  std::vector<ClassTally> classes = {};        ///< in the order in which they first appear
  std::optional<MismatchedRecord> first = {};  ///< the first mismatch
  std::optional<MismatchedRecord> worst = {};  ///< the first with the most ulps; NaN against a
                                               ///< number counts as more
  bool holds() const { return tally.mismatches() == 0; }
};

/// Which results there are, and what is kept of them.
struct JudgeOptions {
  bool flags = false;
  Tolerance tolerance;
  std::int64_t most_mismatches = 0;  ///< stop at so many; 0: never
  std::string name = "records";      ///< of the file, in errors
  std::string place = "line";        ///< what Records::line counts: lines, or records from 0
  bool samples = true;               ///< wrong() and right(), which explain() reads
};

/// Results that are compared, and where the records themselves are.
struct Checked {
  std::vector<CodeComparison> compared;
  std::vector<std::uint64_t> want, want_flags;
  /// Appends record i, as it was given.
  std::function<void(std::int64_t i, Records& to)> append;
  const Records* records = nullptr;  ///< that have classes; null: none has
};

/// Of one batch: what several threads check at a time takes a few MiB each.
std::int64_t batch_records(const Layout&);
/// Writes the next records of a layout, at most so many; false where there are none.
using BatchReader = std::function<bool(std::int64_t most, Records&)>;

/// Runs work(i) for i below n over threads, each under a FloatGuard; throws the first Error of any.
void for_each_part(std::size_t n, const std::function<void(std::size_t)>& work);

/// The same counts, findings and samples for any number of threads and any size of batches.
class Judge {
 public:
  /// Of records of layout_of(subject), by the subject itself.
  Judge(const Subject&, const JudgeOptions&);
  /// Of records of that layout by a rule. The field of results is "d" of a unit, else "out".
  Judge(const Subject&, Rule, Layout, const Comparer&, const JudgeOptions&);

  /// Takes batches until there are no more, as many at a time as there are threads; false where
  /// the limit of mismatches is reached. `told` is called after each.
  bool judge(const BatchReader&, const std::function<void()>& told = {});
  /// Takes the next records, which are checked over threads; false where the limit of mismatches
  /// is reached, after which the rest is left out. Throws Error as evaluate() does, with the
  /// record's place in the file.
  bool check(std::span<const Records> batches);
  /// Takes records whose results were computed elsewhere.
  bool take(const Checked&);
  /// How results and flags of records differ from those computed; `exact`: without tolerance of
  /// ulps and of invalid integers.
  std::vector<CodeComparison> compare(const Records& computed, const Records& given,
                                      bool exact) const;

  const Subject& subject() const { return subject_; }
  const Layout& layout() const { return layout_; }
  const Comparer& comparer() const { return comparer_; }
  const Judged& judged() const { return judged_; }
  /// The first mismatches whose digits are all known.
  const Sample& wrong() const { return wrong_; }
  /// Matches from all over the records.
  const Sample& right() const { return right_; }
  /// The field of results, and that of flags where they are compared, else -1.
  int result_field() const { return result_; }
  int flags_field() const { return flags_; }

 private:
  Checked checked(const Records&) const;
  void add_to(Sample&, const Checked&, std::int64_t i) const;
  /// Appends the record that is `back` before record i, or the file's first.
  void append_earlier(const Checked&, std::int64_t i, std::int64_t back, Records& to) const;
  void find(const Checked&, std::int64_t i, ClassTally&);
  void keep_right(const Checked&, std::int64_t i);
  ClassTally& class_tally(std::string_view name);

  Subject subject_;
  Rule rule_;
  Layout layout_;
  JudgeOptions compared_;
  int result_, flags_;
  Comparer comparer_;
  Judged judged_;
  Sample wrong_, right_;
  Records last_;  ///< the last two of the batches so far
  std::int64_t most_wrong_, most_right_, stride_ = 1;
};

}  // namespace numemu::oracle
