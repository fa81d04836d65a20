// A CIFAR-10 batch, plain or gzip, as the only training batch. (A good one has 30,730,000 bytes:
// the fuzzer sees how wrong ones are refused.)
#include <filesystem>

#include "emu/net/data/load_dataset.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

struct CifarFolder {
  numemu::fuzz::InputFile batch;
  numemu::test::TemporaryFolder folder;

  CifarFolder() { std::filesystem::create_symlink(batch.path(), folder / "data_batch_1.bin"); }
};

}  // namespace

NUMEMU_FUZZ_TARGET(cifar10)(const std::uint8_t* data, std::size_t size) {
  static CifarFolder files;
  files.batch.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kPromised,
                    [] { numemu::net::load_cifar10(files.folder.path()); });
  return 0;
}
