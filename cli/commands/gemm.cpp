// numemu gemm: a matrix product as a unit computes it, or one output with everything that led to
// it.
#include "cli/command.hpp"
#include "cli/product.hpp"

namespace numemu::cli {

void add_gemm(Program& program) {
  auto [command, options] = program.command<ProductOptions>("gemm", run_product);
  options.files.shape = api::ProductShape::batches;
  api::ProductFiles& files = options.files;
  add_product_options(command, options);
  command
      .option("--a A.npy", files.a,
              "Codes of A, [batch x] M x K (sparse units: the kept ones); without batch: for all")
      .required();
  command.option("--b B.npy", files.b, "Codes of B, [batch x] K x N").required();
  command.option("--b-layout LAYOUT", options.b_layout, "kn, or nk where B is [batch x] N x K")
      .one_of({"kn", "nk"});
  command.option("--c C.npy", files.c, "C, [batch x] M x N (default: +0)");
  command.option("--out D.npy", options.out, "D, [batch x] M x N");
  command.option("--scale-a SA.npy", files.scale_a,
                 "Block scales of A, [batch x] M x ceil(K / block)");
  command.option("--scale-b SB.npy", files.scale_b,
                 "Block scales of B, [batch x] ceil(K / block) x N; with nk N x ceil(K / block)");
  command.option("--alpha X", options.alpha, "D = RNE(RNE(alpha x AB) + C) in float32");
  add_epilogue(command, options.epilogue);
  command.option("--bias BIAS.npy", options.epilogue.bias, "int32 [N], with --requantize");
  command.option("--trace m,n", options.trace, "Print the trace of output m,n (or b,m,n) instead");
}

}  // namespace numemu::cli
