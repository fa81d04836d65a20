#include "tests/emu/oracle/planted_faults.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "emu/oracle/explain.hpp"
#include "emu/oracle/generator.hpp"
#include "emu/oracle/record.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::test {
namespace {

std::vector<Call> calls_of(const Layout& layout, const Records& r) {
  std::vector<Call> calls(static_cast<std::size_t>(r.size));
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const std::string& name = layout[f].name;
    for (std::int64_t i = 0; i < r.size; ++i) {
      Call& call = calls[static_cast<std::size_t>(i)];
      const auto begin = r.columns[f].begin() + i * layout[f].count;
      const Codes codes(begin, begin + layout[f].count);
      if (name == "a" || name == "in") call.a = codes;
      if (name == "b") call.b = codes;
      if (name == "sa") call.sa = codes;
      if (name == "sb") call.sb = codes;
      if (name == "e") call.e = codes;
      if (name == "c") call.c = codes[0];
    }
  }
  return calls;
}

Explanation explained(const Bench& bench, const Fault& fault, std::int64_t records = 700) {
  const Generator generator(bench.subject);
  Records given(generator.layout(), records);
  generator.fill(0, given);
  const Layout& layout = generator.layout();
  if (bench.no_c)
    std::ranges::fill(given.columns[static_cast<std::size_t>(find_field(layout, "c"))], 0);
  const std::vector<Call> calls = calls_of(layout, given);
  const auto d =
      static_cast<std::size_t>(find_field(layout, bench.subject.unit != nullptr ? "d" : "out"));
  const int flags = find_field(layout, "flags");
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    answers.push_back(fault(bench.machine, calls, i, answers));
    given.columns[d][i] = answers.back().code;
    if (bench.flags) given.columns[static_cast<std::size_t>(flags)][i] = answers.back().flags;
  }
  JudgeOptions compared;
  compared.flags = bench.flags;
  Judge judge(bench.subject, compared);
  judge.check({&given, 1});
  return explain(judge);
}

/// "rule (or one with the same results); flags", as a report names them.
std::string named(const Explanation& e) {
  std::string text;
  for (const Account* account : {&e.of_results, &e.of_flags}) {
    for (const Fit& fit : account->fits) {
      text += (text.empty() ? "" : "; ") + fit.rule.name;
      for (const Rule& equal : fit.equal) text += " or " + equal.name;
    }
  }
  const bool open =
      (e.results != 0 && e.of_results.fits.empty()) || (e.flags != 0 && e.of_flags.fits.empty());
  return open ? "" : text;
}

}  // namespace

bool all_named(const Bench& bench, const std::vector<Row>& rows) {
  const Fault none = [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
    return m(calls[n]);
  };
  REQUIRE(explained(bench, none).mismatches == 0);
  std::size_t right = 0;
  for (const Row& row : rows) {
    INFO(row.planted);
    const Explanation e = explained(bench, row.fault);
    CHECK(e.mismatches > 0);
    const std::string found = named(e);
    if (*row.named == 0) {
      CHECK(found.empty());
    } else {
      CHECK_THAT(found, Catch::Contains(row.named));
    }
    for (const Account* account : {&e.of_results, &e.of_flags}) {
      for (const Fit& fit : account->fits) CHECK(fit.contradicted == 0);
    }
    right += *row.named == 0 ? found.empty() : found.find(row.named) != std::string::npos;
  }
  return right == rows.size();
}

Bench described(unit::UnitDescription u, std::int64_t k, Machine machine) {
  u.name = "planted";
  std::shared_ptr<const unit::Unit> unit = unit::make_unit(u);
  Subject subject = unit_subject(*unit, k);
  return {std::move(subject), std::move(machine), false, false, std::move(unit)};
}

Fault reads(std::function<void(Call&)> change) {
  return [change = std::move(change)](const Machine& m, const auto& calls, std::size_t n,
                                      const auto&) {
    Call call = calls[n];
    change(call);
    return m(call);
  };
}

Fault writes(std::function<std::uint64_t(std::uint64_t)> change) {
  return [change = std::move(change)](const Machine& m, const auto& calls, std::size_t n,
                                      const auto&) {
    Answer answer = m(calls[n]);
    answer.code = change(answer.code);
    return answer;
  };
}

const Call& before(const std::vector<Call>& calls, std::size_t n) {
  return calls[n == 0 ? 0 : n - 1];
}

Fault by(Machine machine) {
  return [machine = std::move(machine)](const Machine&, const auto& calls, std::size_t n,
                                        const auto&) { return machine(calls[n]); };
}

namespace {

template <class Part>
Fault late_part(Part Call::*part) {
  return [part](const Machine& m, const auto& calls, std::size_t n, const auto&) {
    Call call = calls[n];
    call.*part = before(calls, n).*part;
    return m(call);
  };
}

}  // namespace

Fault late(Codes Call::*part) { return late_part(part); }
Fault late(std::uint64_t Call::*part) { return late_part(part); }

float as_float(std::uint64_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code));
}
std::uint64_t code_of(float x) { return std::bit_cast<std::uint32_t>(x); }

}  // namespace numemu::oracle::test
