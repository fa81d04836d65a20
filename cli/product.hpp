// What gemm and dot do once their options are read: multiply, trace or compare, and print.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "cli/gemm_arrays.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

inline constexpr std::int64_t kWorst = 5;

struct ProductOptions {
  std::string unit, out, trace, flags, compare;
  std::optional<std::int64_t> worst;  ///< else kWorst
  GemmFiles files;
  std::optional<float> alpha;
  std::uint64_t seed = 0;
  bool reference = false, json = false, quiet = false;
};

/// Adds the options whose words are the same in both commands.
void add_product_options(Command&, ProductOptions&);
/// Throws Error for what can be refused before anything is read.
void check_product_options(const ProductOptions&);
/// Runs the command and returns its exit code.
int run_product(const ProductOptions&);

/// A unit by name, or described in a JSON file, which is read once; it lives as long as the
/// program.
const unit::Unit& unit_named(const std::string& name);

/// An output of a batch: (i, j) of a product.
struct Place {
  std::int64_t product = 0, i = 0, j = 0;
};
/// Its position in D, as "0,3", "12,0,3" or "7", and back. parse_place() throws Error naming the
/// option.
std::string place_text(const Place&, const GemmArrays&);
/// The same as members b, m and n of an object.
void add_place(const Place&, const GemmArrays&, Json& json);
Place parse_place(const std::string& option, const std::string& text, const GemmArrays&);
Place place_of(std::int64_t output, const unit::Batch&);
std::int64_t output_of(const Place&, const unit::Batch&);

}  // namespace numemu::cli
