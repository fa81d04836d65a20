// A bench for planted faults: small machines of their own make them, and the fault that was planted
// is the one that is named. The machines compute in the host's floats and integers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "emu/oracle/subject.hpp"
#include "emu/unit/description.hpp"

namespace numemu::oracle::test {

using Codes = std::vector<std::uint64_t>;

/// What a machine is given, and what it answered so far.
struct Call {
  Codes a, b, sa, sb, e;
  std::uint64_t c = 0;
};
struct Answer {
  std::uint64_t code = 0, flags = 0;
};
using Machine = std::function<Answer(const Call&)>;
/// Answers to call n; `machine` is the right one, `given` what was answered before.
using Fault = std::function<Answer(const Machine& machine, const std::vector<Call>& calls,
                                   std::size_t n, const std::vector<Answer>& given)>;

struct Row {
  const char* planted;
  const char* named;  ///< "" where no rule may be named
  Fault fault;
};

struct Bench {
  Subject subject;
  Machine machine;
  bool flags = false;
  bool no_c = false;                            ///< C is zero
  std::shared_ptr<const unit::Unit> unit = {};  ///< where it is not of the catalogue
};
/// Of a unit that such a description makes, at depth k.
Bench described(unit::UnitDescription, std::int64_t k, Machine);

/// Plants each fault in records of the subject and checks its name; of no fault, nothing differs.
/// Whether all are named.
bool all_named(const Bench&, const std::vector<Row>&);

/// A fault in what the machine reads.
Fault reads(std::function<void(Call&)> change);
/// A fault in what it writes.
Fault writes(std::function<std::uint64_t(std::uint64_t)> change);
/// Another machine.
Fault by(Machine);
/// A part of the call is that of the record before.
Fault late(Codes Call::*part);
Fault late(std::uint64_t Call::*part);
/// The call before; the call itself where there is none.
const Call& before(const std::vector<Call>& calls, std::size_t n);

template <class Change>
void each(Codes& codes, const Change& change) {
  for (std::uint64_t& code : codes) code = change(code);
}

float as_float(std::uint64_t code);
std::uint64_t code_of(float);

}  // namespace numemu::oracle::test
