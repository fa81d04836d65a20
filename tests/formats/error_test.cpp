// Kinds of errors, and every exception as one.
#include "formats/error.hpp"

#include <filesystem>
#include <new>

#include "formats/format.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"
#include "tests/catch.hpp"

namespace numemu::error_test {
namespace {

template <class Call>
Error thrown_by(const Call& call) {
  try {
    call();
  } catch (...) {
    return error_of(std::current_exception());
  }
  return Error("nothing is thrown");
}

TEST_CASE("an error says what a caller can do about it", "[fast]") {
  CHECK(thrown_by([] { read_text("/no/such/file"); }).kind() == ErrorKind::file);
  CHECK(thrown_by([] { find_format("e99m99"); }).kind() == ErrorKind::value);
  CHECK(thrown_by([] {
          require_distinct_paths({{"--out", "x"}}, {{"--in", "./x", false}});
        }).kind() == ErrorKind::usage);
}

TEST_CASE("every exception is an Error with the line that the program prints", "[fast]") {
  const Error memory = thrown_by([] { throw std::bad_alloc(); });
  CHECK(memory.kind() == ErrorKind::memory);
  CHECK(memory.what() == std::string("out of memory"));
  const Error folder = thrown_by([] { std::filesystem::create_directory("/no/such/folder"); });
  CHECK(folder.kind() == ErrorKind::file);
  CHECK(folder.what() == std::string("/no/such/folder: No such file or directory"));
  const Error fault = thrown_by([] { throw std::out_of_range("vector"); });
  CHECK(fault.kind() == ErrorKind::internal);
  CHECK(fault.what() == std::string("internal error: vector"));
  CHECK(thrown_by([] { throw 1; }).kind() == ErrorKind::internal);
  CHECK(thrown_by([] { throw memory_error("x"); }).kind() == ErrorKind::memory);
}

TEST_CASE("an error gets its place once, and keeps its kind or gets another", "[fast]") {
  const auto fails = [] { throw file_error("x: none"); };
  const Error placed = thrown_by([&] { at("f", fails); });
  CHECK(placed.what() == std::string("f: x: none"));
  CHECK(placed.kind() == ErrorKind::file);
  CHECK(thrown_by([&] { at("f", ErrorKind::usage, fails); }).kind() == ErrorKind::usage);
  CHECK(thrown_by([&] { at("x", fails); }).what() == std::string("x: none"));
  CHECK(thrown_by([&] { at("x", ErrorKind::usage, fails); }).kind() == ErrorKind::usage);
}

}  // namespace
}  // namespace numemu::error_test
