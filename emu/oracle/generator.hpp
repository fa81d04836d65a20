// Vectors of a style: inputs, expected results and classes, record by record.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "emu/oracle/classes.hpp"
#include "emu/oracle/codes_of_sums.hpp"
#include "emu/oracle/dice.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"

namespace numemu::oracle {

/// Makes records of one subject in its style. Record n is a function of the subject (with seed,
/// level and style) and n, on any machine.
class Generator {
 public:
  /// Throws Error where the subject has no records of the style: no sum that cancels, more inputs
  /// than 2^32 for exhaustive, no unit that aligns. `constants`: of codes of sums, whose sums have
  /// the style.
  explicit Generator(const Subject&, const EpilogueConstants& constants = {});

  const Subject& subject() const { return subject_; }
  const Layout& layout() const { return layout_; }
  /// All records there are, of style exhaustive and of edges that can be combined; else 0: any.
  std::int64_t limit() const { return limit_; }

  /// Fills all of `records` with those from number `first` on. Thread-safe. Throws Error naming the
  /// record where no input of the style was found.
  void fill(std::int64_t first, Records& records) const;

 private:
  struct Workshop;
  /// The class of the record that it writes; empty where no attempt was one.
  static std::string_view write(Style, Dice, int attempts, Workshop&, Records&, std::int64_t i);

  Subject subject_;
  Style style_;
  Layout layout_;
  std::vector<Style> styles_;
  std::int64_t limit_ = 0;
  EpilogueConstants constants_;
  std::shared_ptr<const Generator> sums_;  ///< of codes of sums
};

}  // namespace numemu::oracle
