// Descriptions that may be the rule of an unknown unit, and which of them agree with its answers.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "emu/oracle/dots/dots.hpp"
#include "emu/oracle/patches.hpp"
#include "emu/unit/description.hpp"

namespace numemu::oracle {

// Rivals of a unit: descriptions that differ from its own in one parameter and in some result.

/// The patches for which some constructed or random question of this depth has another result; of
/// several that agree on all of them, the first. `depth` 0: twice the instruction's K.
std::vector<Rival> rivals_of(const unit::UnitDescription&, int depth = 0);

/// The depth at which two instructions follow each other, between 8 and 128: a multiple of the
/// sparsity's group.
int telling_depth(const unit::UnitDescription&);

/// Asks the product 1 at each position, alone: those with the answer to no product at all, where
/// others have another one. Of dense dots; else none.
std::vector<int> lost_products(const Ports&, const std::function<std::uint64_t(const Dot&)>&);

/// The dot with zeros at those positions, of a dense one.
Dot without_products(Dot, const std::vector<int>& positions);

/// The step of each product, as the variant of the step map shows it that tells the most steps
/// apart; empty where none does, and of more than 64 products.
std::vector<int> steps_of_unit(const unit::UnitDescription&, const Ports&);

/// Plain units of every core for these ports: what a search without the catalogue begins with.
std::vector<unit::UnitDescription> families(const Ports&);
/// Those with one level of accumulation, but every `block` products are summed apart and their sum
/// is added to a register of D's format.
std::vector<unit::UnitDescription> in_blocks(std::span<const unit::UnitDescription>, int block);
/// The units of the catalogue, with their modifiers, that have these ports.
std::vector<unit::UnitDescription> presets(const Ports&);

/// What was asked and answered so far.
class Evidence {
 public:
  Evidence(const Ports& ports, bool any_nan) : ports_(ports), any_nan_(any_nan) {}

  void add(const Dot& dot, std::uint64_t code);
  /// Another answer to question i.
  void replace(std::size_t i, std::uint64_t code) { codes_[i] = code; }
  std::size_t size() const { return dots_.size(); }
  /// Whether two codes of D count as the same answer.
  bool same(std::uint64_t x, std::uint64_t y) const;
  /// Answers that a description contradicts; counting ends beyond `most`.
  std::size_t contradictions(const unit::UnitDescription&, std::size_t most) const;
  bool agrees(const unit::UnitDescription& u) const { return contradictions(u, 0) == 0; }
  /// The positions of the contradicted answers, the first `most` of them.
  std::vector<std::size_t> contradicted(const unit::UnitDescription&, std::size_t most) const;
  /// Of these answers alone.
  Evidence part(std::span<const std::size_t> positions) const;
  /// The same questions as a description answers them.
  Evidence answered_by(const unit::UnitDescription&) const;
  /// The same answers to questions without the products at some positions; of dense dots.
  void drop_products(const std::vector<int>& positions);
  const Ports& ports() const { return ports_; }

 private:
  const Ports& ports_;
  bool any_nan_;
  std::vector<Dot> dots_;
  std::vector<std::uint64_t> codes_;
};

/// Descriptions without repetition, whatever their names.
class Candidates {
 public:
  /// False where the same rule was added before.
  bool add(unit::UnitDescription);
  std::vector<unit::UnitDescription> all;

 private:
  std::unordered_set<std::string> rules_;
};

/// Whether x is said in fewer fields than y; of equally many, a chain is plainer than a tree of one
/// product a step, which has the same results.
bool plainer(const unit::UnitDescription& x, const unit::UnitDescription& y);

/// Descriptions that agree with the evidence, the plainest first, found by changing one parameter
/// after another of those given; where none does, the one with the fewest contradictions. Ends with
/// the best so far once `stop` says so, which all threads ask.
std::vector<unit::UnitDescription> search(const Evidence&,
                                          std::span<const unit::UnitDescription> first,
                                          const std::function<bool()>& stop = {});

}  // namespace numemu::oracle
