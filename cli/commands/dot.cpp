// numemu dot: independent dot products as a unit computes them.
#include "cli/command.hpp"
#include "cli/product.hpp"

namespace numemu::cli {

void add_dot(Program& program) {
  auto [command, options] = program.command<ProductOptions>("dot", run_product);
  options.files.shape = api::ProductShape::dots;
  api::ProductFiles& files = options.files;
  add_product_options(command, options);
  command
      .option("--a A.npy", files.a,
              "Codes of A, N x K (sparse units: the kept ones), or K for all dots")
      .required();
  command.option("--b B.npy", files.b, "Codes of B, N x K, or K for all dots").required();
  command.option("--c C.npy", files.c, "C, N numbers (default: +0)");
  command.option("--out D.npy", options.out, "D, N results");
  command.option("--scale-a SA.npy", files.scale_a, "Block scales of A, N x ceil(K / block)");
  command.option("--scale-b SB.npy", files.scale_b, "Block scales of B, N x ceil(K / block)");
  command.option("--trace n", options.trace, "Print the trace of dot n instead");
}

}  // namespace numemu::cli
