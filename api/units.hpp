// Matrix units: open one, multiply with it bit for bit, see how a result came about.
//
// All functions throw numemu::Error: one line that names the file, array or option and what was
// expected. Vectors, verification and identification of units: api/oracle.hpp.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/progress.hpp"
#include "emu/unit/batch.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "emu/unit/reference/divergence.hpp"
#include "emu/unit/reference/given_result.hpp"
#include "emu/unit/reference/losses.hpp"
#include "emu/unit/unit.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/json.hpp"

namespace numemu::api {

using UnitPtr = std::shared_ptr<const unit::Unit>;

/// A unit of the catalogue by name, alias or unambiguous short form ("h100.wgmma.e4m3.f32"), a
/// neutral one by its description ("neutral.mac.e5m10.sr8"), or one that a file NAME.json describes
/// (docs/describe-a-unit.md), or the text of such a file, which begins with {. Throws Error with
/// the nearest known name, or the file and its key.
UnitPtr open_unit(const std::string& name);
/// Whether open_unit() reads a file of that name.
inline bool is_unit_file(const std::string& name) { return name.ends_with(".json"); }
/// All units of the catalogue, or those that a name or a pattern fits ("h100.wgmma", "*.e4m3x*");
/// where a pattern fits no name, those whose source has such a word ("*avx*"). At least one.
std::vector<const unit::Unit*> find_units(const std::string& pattern = "");

/// All that is known of a unit, its parameters as docs/describe-a-unit.md writes them: `numemu
/// units NAME --json`.
Json unit_json(const unit::Unit&);

/// The types of the arrays C and D of a unit: containers of their formats, int32 of wide two's
/// complement.
ArrayType c_type(const unit::Unit&);
ArrayType result_type(const unit::Unit&);

/// What the axes of A, B, C and D are.
enum class ProductShape : std::uint8_t {
  /// A is M x K, B is K x N, C and D are M x N; each may have a leading axis, the product. An array
  /// without it serves all products. A vector is one row of A, or one column of B.
  batches,
  dots,  ///< A and B are N x K, or one row for all; C and D have N elements
};

/// Elements of an operand, and outputs, at most: offsets have 32 bits.
inline constexpr std::int64_t kMostOperandElements = INT32_MAX;

/// The arrays of a product, in memory: their own, or the caller's without a copy
/// (Array::borrowed()). Sparse units: A holds the kept elements.
struct Operands {
  Codes a, b;
  std::optional<Array> c = {};  ///< in the type of the unit's C; float32 ones also take float16
  /// Where D goes, of the type and shape of the result, beside all operands; nothing: the product
  /// makes room.
  std::optional<Array> d = {};
  /// Codes of the block scales: [products x] M x ceil(K / block), and ceil(K / block) x N.
  std::optional<Array> scale_a = {}, scale_b = {};
  std::optional<Array> meta = {};  ///< of a sparse A: uint8, or uint32 words of layout ptx
  std::string meta_layout = {};    ///< index where it is empty, or ptx
  ProductShape shape = ProductShape::batches;
  bool b_by_columns = false;  ///< B is N x K, and its scales N x blocks
  std::uint64_t seed = 0;     ///< of stochastic registers
};

/// Operands in files; an empty name is none. Formats are needed where the unit takes any and no
/// sidecar names one.
struct ProductFiles {
  std::string a = {}, b = {}, c = {}, scale_a = {}, scale_b = {}, meta = {};
  std::string format_a = {}, format_b = {}, format_d = {};
  std::string meta_layout = {};
  ProductShape shape = ProductShape::batches;
  bool b_by_columns = false;
  std::uint64_t seed = 0;
};

/// What the leading axes of an operand are: products, and rows of A or columns of B.
struct ProductSide {
  bool batched = false;
  std::int64_t products = 1, lines = 0, depth = 0;

  /// The shape of an array with `width` elements for each line: scales, metadata. The lines of a
  /// dot have no axis.
  ArrayShape lines_of(ProductShape, std::int64_t width) const;
};

/// Products that are ready to multiply: arrays that fit the unit and each other. `batch` points
/// into them.
struct Product {
  UnitPtr unit;
  ProductShape shape = ProductShape::batches;
  Codes a, b;
  Array c, d;   ///< c.shape is empty where there is none; d is what multiply() writes
  Array flags;  ///< of each output, where they were asked for
  Array scale_a, scale_b, kept;
  std::int64_t nan_scales = 0;
  unit::Gather gather_a, gather_b;
  ProductSide side_a, side_b;
  unit::Batch batch;
  unit::Gemm& gemm = batch.first;

  Product() = default;
  Product(const Product&) = delete;
};

/// Throws Error naming the array or file and what was expected: formats that contradict the unit,
/// shapes that do not fit each other, codes that the format does not have, metadata that is not a
/// legal pattern.
std::unique_ptr<Product> make_product(UnitPtr, Operands);
std::unique_ptr<Product> read_product(UnitPtr, const ProductFiles&);
/// Throws Error where the layout of metadata is unknown, or there is none to have it.
void check_meta_layout(const ProductFiles&);

struct MultiplyOptions {
  /// D = RNE(RNE(alpha AB) + C) in float32, outside the unit, whose results must be float32.
  std::optional<float> alpha = {};
  bool reference = false;  ///< by the specification, some hundred times slower; the same bits
  bool flags = false;      ///< fill Product::flags, by the specification; not every unit has them
  OnProgress on_progress = {};
};
/// Computes product.d, over OpenMP threads; the same bits for any number of them.
void multiply(Product&, const MultiplyOptions& = {});
/// make_product() and multiply().
std::unique_ptr<Product> gemm(UnitPtr, Operands, const MultiplyOptions& = {});
/// gemm() of ProductShape::dots.
std::unique_ptr<Product> dot(UnitPtr, Operands, const MultiplyOptions& = {});

/// Numbers and what an Error calls them.
struct NamedNumbers {
  std::string name = {};
  std::vector<double> values = {};
};

/// What follows an integer unit: numbers are one, or one for each column of D.
struct EpilogueNumbers {
  std::string requantize = {};         ///< a name of unit::parse_requantization()
  std::string format = "int8";         ///< of the codes: integers of at most 16 bits
  NamedNumbers factor = {"--factor"};  ///< positive, or none
  NamedNumbers multiplier = {
      "--multiplier"};  ///< of fixed point, with `shift` in place of `factor`
  NamedNumbers shift = {"--shift"};
  std::vector<std::int32_t> bias = {};  ///< one for each column, or none
  std::int64_t zero_point = 0;
  std::optional<std::int64_t> low = {}, high = {};  ///< of codes; the ends of the format
  bool arguments = false;  ///< an Error names arguments (zero_point), not options (--zero-point)
};
/// Throws Error naming the option and what was expected.
unit::Epilogue make_epilogue(const unit::Unit&, const EpilogueNumbers&);

/// The same as texts: a file NAME.npy has one number for each column of D.
struct EpilogueFiles {
  std::string requantize = {};  ///< float, fixed-point-single or fixed-point-double
  std::string format = "int8";  ///< of the codes: integers of at most 16 bits
  std::string bias = {};        ///< a file of int32, or none
  /// The factor, a number or a file of floats; or of fixed point its multiplier and shift, numbers
  /// or files of int32.
  std::string factor = {}, multiplier = {}, shift = {};
  std::optional<std::int64_t> zero_point = {};      ///< else 0
  std::optional<std::int64_t> low = {}, high = {};  ///< of codes; the ends of the format
};
/// Of texts but `bias`. Throws Error naming the option or file and what was expected.
EpilogueNumbers numbers_of(const EpilogueFiles&);
unit::Epilogue read_epilogue(const Product&, const EpilogueFiles&);
/// The codes that it makes of product.d, which has int32 sums. Throws Error unless it has one
/// number or one for each column.
Codes requantized(const Product&, const unit::Epilogue&, const Format&);
/// Writes codes and their sidecar.
void write_codes(const Codes&, const std::string& path);

/// D of the unit's type as another program computed it, of the shape of product.d.
Array read_result(const Product&, const std::string& path);
/// Throws Error naming the results unless they have the type and the shape of product.d.
void require_results(const Product&, const Array& results, const std::string& name);
/// Writes D and, unless the name is empty, the flags. float32, float64 and integer registers of 32
/// and 16 bits are numbers, others codes with their sidecar.
void write_result(const Product&, const std::string& path, const std::string& flags = "");

/// An output: (i, j) of a product of the batch.
struct Place {
  std::int64_t product = 0, i = 0, j = 0;
};
std::int64_t output_of(const Place&, const unit::Batch&);
Place place_of(std::int64_t output, const unit::Batch&);
/// The position in D, as "0,3", "12,0,3" or "7", and back; `option` begins the Error.
std::string place_text(const Place&, const Product&);
Place parse_place(const std::string& option, const std::string& text, const Product&);

/// How a unit computed output (i, j) of a product: every step with its terms, and what was lost.
struct TracedOutput {
  const unit::Unit* unit;
  unit::Gemm gemm;
  unit::Trace trace;
  std::vector<unit::StepLosses> losses;  ///< of each step

  TracedOutput(const unit::Unit&, const unit::Gemm&, std::int64_t i, std::int64_t j, unit::Trace);
};
/// The product must outlive the trace. Throws Error where the unit has no description.
TracedOutput trace(const Product&, const Place&);

/// An output that the unit and the other give differently.
struct ComparedOutput {
  Place place;
  std::int64_t output = 0;
  std::optional<std::uint64_t> ulps = {};  ///< nothing: one of them is NaN
  Value own, given, exact;
  unit::Nearer nearer = unit::Nearer::neither;  ///< to the exact sum: first is the unit
};

/// D of a unit that was multiplied beside results made elsewhere, or beside another unit's.
struct Comparison {
  const Product* product = nullptr;
  UnitPtr other = {};  ///< null: results are compared
  std::int64_t outputs = 0, differ = 0;
  std::optional<std::uint64_t> most_ulps = 0;  ///< nothing: NaN beside a number
  /// Exact sums cost much: of many that differ, so many were judged, evenly spaced.
  std::int64_t judged = 0, unit_nearer = 0, other_nearer = 0;
  std::vector<ComparedOutput> worst;
};
/// The `worst` that differ most are kept. Throws Error where the two cannot be compared.
Comparison compare(const Product&, const Array& results, std::size_t worst = 5);
Comparison compare(const Product&, UnitPtr other, std::size_t worst = 5);
/// With the results of a file NAME.npy, else with a unit that open_unit() finds.
Comparison compare(const Product&, const std::string& other, std::size_t worst = 5);
inline bool is_results_file(const std::string& other) { return other.ends_with(".npy"); }
/// Of results: what the unit's steps tell about one, in lines.
std::vector<std::string> explain(const Comparison&, const ComparedOutput&);
/// Of units: the steps in which the two part.
unit::Divergence find_divergence(const Comparison&, const ComparedOutput&);

}  // namespace numemu::api
