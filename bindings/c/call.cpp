// Cold: a negligible share of any run (docs/build.md).
#include "bindings/c/call.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>

namespace numemu::c {
namespace {

/// A text of fixed room: keeping a message must not fail.
struct Message {
  char text[2048] = "";
};
Message& message() {
  thread_local Message kept;
  return kept;
}

void keep(const char* text) noexcept {
  Message& kept = message();
  const std::size_t length = std::min(std::strlen(text), sizeof kept.text - 1);
  std::memcpy(kept.text, text, length);
  kept.text[length] = 0;
}

constexpr ArrayType kTypes[] = {ArrayType::int8,    ArrayType::uint8,  ArrayType::int16,
                                ArrayType::uint16,  ArrayType::int32,  ArrayType::uint32,
                                ArrayType::int64,   ArrayType::uint64, ArrayType::float16,
                                ArrayType::float32, ArrayType::float64};
static_assert(std::size(kTypes) == NUMEMU_FLOAT64 + 1);

}  // namespace

numemu_status fail() noexcept {
  try {
    const Error error = error_of(std::current_exception());
    keep(error.what());
    switch (error.kind()) {
      case ErrorKind::usage:
        return NUMEMU_USAGE;
      case ErrorKind::file:
        return NUMEMU_FILE;
      case ErrorKind::value:
        return NUMEMU_VALUE;
      case ErrorKind::memory:
        return NUMEMU_MEMORY;
      case ErrorKind::internal:
        return NUMEMU_INTERNAL;
    }
  } catch (...) {
    keep("no memory is left for the message of an error");
    return NUMEMU_MEMORY;
  }
  return NUMEMU_INTERNAL;
}

Given::Given(const numemu_array* array, const char* name)
    : array_(&required(array, name)), name_(name) {
  const auto fail_with = [&](const std::string& text) {
    throw usage_error(fmt::format("{}: {}", name, text));
  };
  if (array->type < 0 || array->type > NUMEMU_FLOAT64)
    fail_with(fmt::format("type: expected 0 to {}, found {}", NUMEMU_FLOAT64, array->type));
  type_ = kTypes[array->type];
  if (array->axes < 0 || array->axes > NUMEMU_MOST_AXES)
    fail_with(fmt::format("axes: expected 0 to {}, found {}", NUMEMU_MOST_AXES, array->axes));
  if (array->axes > 0 && array->shape == nullptr)
    fail_with("shape: expected a pointer, found NULL");
  shape_.assign(array->shape, array->shape + array->axes);
  for (const std::int64_t extent : shape_)
    if (extent < 0)
      fail_with(fmt::format("shape: expected extents of at least 0, found {}", extent));
  const int bytes = bytes_of(type_);
  const std::optional<std::int64_t> count = element_count_of(shape_);
  if (!count || *count > INT64_MAX / bytes)
    fail_with("shape: expected at most 2^63 - 1 bytes, found " + shape_text(shape_));
  elements_ = *count;
  if (elements_ > 0 && array->data == nullptr) fail_with("data: expected a pointer, found NULL");
  strides_.resize(shape_.size());
  std::int64_t step = bytes;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    strides_[i] = array->strides == nullptr ? step : array->strides[i];
    if (elements_ > 0) step *= shape_[i];
    // The furthest element must be an address.
    std::int64_t reach = 0;
    if (shape_[i] > 1 && (__builtin_mul_overflow(shape_[i] - 1, strides_[i], &reach) ||
                          reach > INT64_MAX / 16 || reach < INT64_MIN / 16))
      fail_with(fmt::format("strides: expected a step within memory, found {}", strides_[i]));
  }
}

bool Given::in_place() const {
  std::int64_t step = bytes_of(type_);
  for (std::size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] > 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return reinterpret_cast<std::uintptr_t>(array_->data) %
             static_cast<std::uintptr_t>(bytes_of(type_)) ==
         0;
}

/// move(element of the caller, bytes from the beginning of a copy in C order), for each.
template <class Move>
void Given::each(const Move& move) const {
  if (elements_ == 0) return;
  const std::size_t axes = shape_.size();
  ArrayShape at(axes, 0);
  auto* element = static_cast<std::byte*>(array_->data);
  const int bytes = bytes_of(type_);
  for (std::int64_t i = 0; i < elements_; ++i) {
    move(element, i * bytes);
    for (std::size_t axis = axes; axis-- > 0;) {
      element += strides_[axis];
      if (++at[axis] < shape_[axis]) break;
      element -= strides_[axis] * shape_[axis];
      at[axis] = 0;
    }
  }
}

Array Given::read() const {
  if (in_place()) return Array::borrowed(type_, shape_, array_->data);
  Array copy(type_, shape_);
  each([&](const std::byte* element, std::int64_t at) {
    std::memcpy(copy.data.data() + at, element, static_cast<std::size_t>(bytes_of(type_)));
  });
  return copy;
}

Array Given::room() const {
  return in_place() ? Array::borrowed(type_, shape_, array_->data) : Array(type_, shape_);
}

void Given::finish(const Array& made) const {
  if (made.data.data() == array_->data) return;
  each([&](std::byte* element, std::int64_t at) {
    std::memcpy(element, made.data.data() + at, static_cast<std::size_t>(bytes_of(type_)));
  });
}

void Given::require_type(ArrayType expected) const {
  if (type_ != expected)
    throw usage_error(fmt::format("{}: type: expected {}, found {}", name_, to_string(expected),
                                  to_string(type_)));
}

void Given::require_shape(const ArrayShape& expected) const {
  if (shape_ != expected)
    throw usage_error(fmt::format("{}: shape: expected {}, found {}", name_, shape_text(expected),
                                  shape_text(shape_)));
}

Result::Result(const numemu_array* array, const char* name, ArrayType type,
               const ArrayShape& shape) {
  if (array == nullptr) return;
  given_.emplace(array, name);
  given_->require_type(type);
  given_->require_shape(shape);
  array_ = given_->room();
}

void write_text(const std::string& made, char* text, std::size_t room, std::size_t* length) {
  if (length != nullptr) *length = made.size();
  if (text == nullptr || room == 0) return;
  const std::size_t copied = std::min(made.size(), room - 1);
  std::memcpy(text, made.data(), copied);
  text[copied] = 0;
}

void set_random(const numemu_random* given, Conversion& conversion) {
  const numemu_random random = members_or_zero(given, "random");
  conversion.random.seed = random.seed;
  if (random.stream != 0) conversion.random.stream = static_cast<Stream>(random.stream);
  conversion.random.tensor = random.tensor;
  if (random.draw > 0xffff)
    throw usage_error(fmt::format("random: draw: expected at most 65535, found {}", random.draw));
  conversion.random.draw = static_cast<std::uint16_t>(random.draw);
  conversion.random_words = random.words;
}

Conversion conversion_to(const Format& format, const numemu_rounding* rounding,
                         const numemu_random* random) {
  Conversion out{.format = &format, .symmetric = false};
  if (rounding != nullptr) {
    out.rounding = rounding->rounding;
    out.overflow = rounding->overflow;
  }
  set_random(random, out);
  return out;
}

numemu_counts counts_of(const FlagCounts& counts) {
  return {sizeof(numemu_counts), counts.elements, counts.inexact,
          counts.underflow,      counts.overflow, counts.invalid};
}

}  // namespace numemu::c

using namespace numemu;

const char* numemu_version(void) { return NUMEMU_VERSION; }
const char* numemu_message(void) { return c::message().text; }

numemu_status numemu_set_threads(int32_t most) {
  return c::guarded([&] {
    if (most < 0) throw usage_error(fmt::format("threads: expected at least 0, found {}", most));
    omp_set_num_threads(most == 0 ? omp_get_num_procs() : most);
  });
}
