// Records as the caller has them: a column of codes for each field, any of which may be NULL.
#pragma once
#include <cstdint>
#include <functional>

#include "emu/oracle/record.hpp"

namespace numemu::c {

using Columns = std::uint64_t* const*;

/// Throws Error unless the columns can hold n records.
void require_columns(const oracle::Layout&, Columns, std::int64_t n);

/// Records [first, first + n) without their results, or with them. A column that is NULL is all 0.
oracle::Records records_of(const oracle::Layout&, Columns, std::int64_t first, std::int64_t n,
                           bool results);
/// Writes fields from record `first` on: the results, or all.
void give_records(const oracle::Layout&, const oracle::Records&, std::int64_t first, Columns,
                  bool inputs);

/// Calls body(first, n) for pieces of some records over threads. The first piece that throws
/// decides what is thrown.
void in_pieces(const oracle::Layout&, std::int64_t n,
               const std::function<void(std::int64_t first, std::int64_t n)>& body);

}  // namespace numemu::c
