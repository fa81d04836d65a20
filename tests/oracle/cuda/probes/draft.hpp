// A probe while it is written: products and C as exact numbers, factors and scales found so that
// the types can express them.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/oracle/recording/probe.hpp"
#include "tests/oracle/cuda/probes/exact.hpp"

namespace numemu::oracle::recording::probing {

/// Four bits of metadata for two kept of four (PTX ISA, "Sparse matrix storage"): the first two; of
/// one_of_two the first.
constexpr std::uint8_t kFirstTwo = 0b0100;
constexpr std::uint8_t kLastTwo = 0b1110;

/// The k of kept position `position`: which code of B it meets. Dense: itself.
int k_of(const Instruction&, const std::vector<std::uint8_t>& metadata, int position);

/// The n-th position of a set that shares a step in every known description of the unit: 0, 1, 4, 5
/// and so on for eight bits and fewer (a lowered unit splits by k mod 4), one in each group of 16
/// for FP4 with several scales, else 0, 1, 2.
int together(const Instruction&, int n);

/// An exponent for large products: far above the small ones, and the result can hold it.
int top_exponent(const Instruction&);

/// Setters return the draft; a value that the types lack makes it inexpressible.
/// Positions count the kept of A; all others are zeros (scales: 1).
class Draft {
 public:
  Draft(const Instruction&, std::string id, std::string question);

  Draft& product(int position, Exact value);
  Draft& factors(int position, Exact a, Exact b);
  Draft& codes(int position, Code a, Code b);
  Draft& c(Exact);
  Draft& c_code(Code);
  /// B at a k of the dense B, kept or not, whatever a product puts there.
  Draft& b_code(int k, Code);
  Draft& metadata(std::uint8_t every_group);
  Draft& metadata(int group, std::uint8_t word);
  /// The scales of a block as codes; the elements of the block then come through codes or factors.
  Draft& scales(int block, Code a, Code b);
  /// One block for all of K: products are written as elements times 2^exponent.
  Draft& common_scale(int exponent);
  /// Blocks without a scale so far, of several, get the least one: theirs would else be the largest
  /// exponent beside tiny terms.
  Draft& least_scales();
  Draft& only_if(bool condition);

  bool expressible() const { return expressible_; }
  const Instruction& instruction() const { return *instruction_; }
  /// Of an expressible draft.
  Probe probe() const;

 private:
  struct Placed {
    int position;
    std::uint64_t a, b;
  };
  struct Split {
    Code a, b;
  };
  Split split(Exact value) const;
  Split split_integer(Exact value) const;
  bool set_scale(int block, int exponent);

  const Instruction* instruction_;
  Probe probe_;
  std::vector<Placed> placed_;
  std::vector<std::pair<int, std::uint64_t>> b_codes_;
  std::vector<std::optional<int>> scale_exponents_;
  bool expressible_ = true;
};

/// The probes of one instruction, in the order in which families add them.
class Sheet {
 public:
  explicit Sheet(const Instruction& instruction) : instruction_(&instruction) {}
  const Instruction& instruction() const { return *instruction_; }
  Draft draft(const std::string& id, const std::string& question) const {
    return Draft(*instruction_, id, question);
  }
  /// Drops what the types of the instruction cannot express.
  void add(const Draft& draft) {
    if (draft.expressible()) probes_.push_back(draft.probe());
  }
  std::vector<Probe> take() { return std::move(probes_); }

 private:
  const Instruction* instruction_;
  std::vector<Probe> probes_;
};

}  // namespace numemu::oracle::recording::probing
