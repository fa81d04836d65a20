// Test vectors: records of inputs and expected results of a unit or an operation, for testbenches
// and kernels.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/units.hpp"
#include "emu/oracle/file_forms.hpp"
#include "emu/oracle/generator.hpp"

namespace numemu::api {

/// Of a unit, or of an operation; empty texts say nothing.
struct VectorOptions {
  std::string unit = {}, format_a = {}, format_b = {};  ///< formats where the unit takes any
  std::string op = {};  ///< convert, mul, add, fma, dot: exact, rounded once
  std::string format = {}, from = {}, to = {}, rounding = {}, overflow = {};  ///< of the operation
  std::optional<std::int64_t> k = {};  ///< products of a dot, or of a unit
  std::string style = "mixed";         ///< emu/oracle/style.hpp lists them
  std::int64_t level = 1;              ///< 1 or 2: more edges
  std::optional<std::int64_t> n = {};  ///< records; else 10,000 at level 1, a million at level 2
  std::uint64_t seed = 0;
};

/// Record i is a function of the options and i, on any machine and for any number of threads.
class Vectors {
 public:
  /// Throws Error naming the option, or where the subject has no records of the style.
  explicit Vectors(const VectorOptions&);

  std::int64_t size() const { return size_; }
  const oracle::Subject& subject() const { return generator_->subject(); }
  const oracle::Layout& layout() const { return generator_->layout(); }
  /// Records [first, first + records.size).
  void fill(std::int64_t first, oracle::Records& records) const {
    generator_->fill(first, records);
  }

  /// The text of a file, piece by piece; of text, csv and jsonl.
  void write(oracle::FileForm, const std::function<void(const std::string&)>& to,
             const OnProgress& = {}) const;
  /// A file; of readmemh PATH.a.hex, PATH.b.hex and so on. Throws Error where it would be too large
  /// to be made in memory.
  void write_file(oracle::FileForm, const std::string& path, const OnProgress& = {}) const;

 private:
  /// Calls `use` with every batch in its order; `make` runs on all threads before.
  template <class Piece>
  void in_order(const std::function<void(oracle::Records&, Piece&)>& make,
                const std::function<void(Piece&)>& use, const OnProgress&) const;

  UnitPtr unit_;
  std::optional<oracle::Generator> generator_;
  std::int64_t size_ = 0;
};

}  // namespace numemu::api
