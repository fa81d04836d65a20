// Names of data sets and the mistakes in them.
#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::load_dataset_test {
namespace {

std::string message(const std::string& name) {
  return numemu::test::message_of([&] { load_dataset(name, "unused"); });
}

TEST_CASE("names that are no data set", "[fast]") {
  CHECK(message("minst:/x") == "unknown data set 'minst'; did you mean 'mnist'?");
  CHECK(message("cifar:/x") == "unknown data set 'cifar'; near: cifar10, cifar100");
  CHECK(message("glyph") == "unknown data set 'glyph'; did you mean 'glyphs'?");
  CHECK(message("mnist") == "data set 'mnist': expected mnist:DIR with the folder of its files");
  CHECK(message("cifar10:") ==
        "data set 'cifar10:': expected cifar10:DIR with the folder of its files");
  CHECK(message("glyphs:/x") == "data set 'glyphs:/x': expected glyphs alone, it needs no folder");
  CHECK(message("clicks:7") == "data set 'clicks:7': expected clicks alone, it needs no folder");
  CHECK(message("text") == "data set 'text': expected text:FILE with the text");
  CHECK(message("text:/no/such/file") == "/no/such/file: expected a regular file");
  CHECK(message("mnist:/no/such/folder") ==
        "/no/such/folder: expected a file train-images-idx3-ubyte or train-images.idx3-ubyte, "
        "plain or .gz, found none");
}

}  // namespace
}  // namespace numemu::net::load_dataset_test
