#include "emu/oracle/rule.hpp"

#include <iterator>

#include "emu/oracle/evaluate.hpp"

namespace numemu::oracle {

Records predict(const Subject& s, const Rule& rule, const Sample& sample, const Rule& then) {
  Records records = sample.records;
  for (const Rule* one : {&rule, &then}) {
    if (one->inputs) one->inputs(records, sample);
  }
  if (rule.compute) {
    rule.compute(records);
  } else {
    evaluate(s, records);
  }
  for (const Rule* one : {&rule, &then}) {
    if (one->results) one->results(records, sample);
  }
  return records;
}

std::vector<Rule> rules_of(const Subject& s) {
  std::vector<Rule> all = s.unit != nullptr ? unit_rules(s) : operation_rules(s);
  for (auto part : {operand_rules, format_rules, stream_rules, result_rules}) {
    std::vector<Rule> more = part(s);
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace numemu::oracle
