// Names of rows: two different points never have the same one.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/report/report_row.hpp"

namespace numemu::experiments {

/// Fills in label, name and settings. Where rows share a short label, the keys of the points in
/// which these rows differ are added with their values, unless that is the commonest one, the unit
/// last; rows of the same point (of several numerics versions) are distinguished by version or
/// place. Without `seeds`, names do not contain seeds.
void name_rows(std::vector<ReportRow>&, bool seeds = true);

/// Places of rows whose points differ in nothing but their seed, together: one list for each
/// configuration, in order of appearance. Rows of the same seed stay apart.
std::vector<std::vector<std::size_t>> same_but_seed(const std::vector<ReportRow>&);

/// "5 layers mxfp8_e4m3 + conv1 int8": the layers of a row whose rules give them other formats or
/// another unit than the base, or, where both are the base's, what else. "" without such layers.
std::string layer_overrides(const Row&);

}  // namespace numemu::experiments
