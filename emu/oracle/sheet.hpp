// The list of questions of some ports while it is written.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu/oracle/draft.hpp"

namespace numemu::oracle {

/// Collects what can be expressed: every probe, and of other questions each dot once.
class Sheet {
 public:
  explicit Sheet(const Ports& ports) : ports_(ports) {}
  const Ports& ports() const { return ports_; }
  Draft draft(std::string aspect = {}, std::string id = {}) const {
    return Draft(ports_, std::move(aspect), std::move(id));
  }

  void add(const Draft& draft) { add(draft.aspect(), draft); }
  void add(const std::string& aspect, const Draft& draft);
  std::vector<Question> take() { return std::move(questions_); }

 private:
  const Ports& ports_;
  std::set<std::vector<std::uint64_t>> seen_;
  std::vector<Question> questions_;
};

}  // namespace numemu::oracle
