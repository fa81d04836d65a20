// Reads the golden vectors in the shared folder: the indexes, and records as batches of dots.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/oracle/mma/golden_batch.hpp"
#include "tests/oracle/mma/golden_units.hpp"

namespace numemu::oracle::mma {

/// $NUMEMU_SHARED/golden/mma, "" where there is none.
std::string golden_folder();

/// A line of a tab-separated file, by the names of its first line.
using IndexRow = std::map<std::string, std::string>;
std::vector<IndexRow> read_index(const std::string& path);

/// Throws Error when the file does not hold as many records as the index says.
Batch read_hardware(const std::string& folder, const IndexRow&, const GoldenUnit&);
Batch read_model(const std::string& folder, const IndexRow&, const GoldenUnit&);

/// Records of fixed-width fields, pulled apart: result[i] holds field i of every record.
std::vector<std::string> split_records(const std::string& bytes,
                                       const std::vector<std::int64_t>& widths);

/// The same numbers in another format: bytes of 2 or 4 an element; rounds to nearest even.
std::string converted(const std::string& bytes, const Format& from, const Format& to);

}  // namespace numemu::oracle::mma
