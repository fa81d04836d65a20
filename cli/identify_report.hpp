// What identify prints of a finding.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/identify.hpp"
#include "emu/oracle/summation_tree.hpp"

namespace numemu::cli {

struct IdentifyReport {
  oracle::Finding finding;
  std::optional<oracle::SummationNode> tree;
  std::size_t asked = 0;
  bool order_asked = false;
  const char* place = nullptr;       ///< of records: "line" or "record"; nullptr: a device answered
  std::vector<std::int64_t> places;  ///< of each record

  bool records() const { return place != nullptr; }
};

/// Of the finding's rule, with a name that no unit of the catalogue has, so that gemm takes the
/// file.
unit::UnitDescription own_description(const oracle::Finding&, const oracle::Ports&);

std::string identify_text(const IdentifyReport&, const oracle::Ports&);
std::string identify_json(const IdentifyReport&, const oracle::Ports&);

}  // namespace numemu::cli
