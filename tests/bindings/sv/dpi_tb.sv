// Every way into the package, beside results that are known.
module dpi_tb;
  import numemu_pkg::*;

  int failures = 0;

  function automatic void expect_code(string what, code_t got, code_t want);
    if (got != want) begin
      failures++;
      $display("%s: expected %h, got %h", what, want, got);
    end
  endfunction

  numemu_format     e4m3;
  numemu_operation  fma, dot, sparse, none;
  numemu_vectors    vectors;
  numemu_scoreboard board;
  flags_t           flags;
  code_t            code;
  vector_t          value;
  code_t            a[8], b[8], c[2], d[2], short_b[4];
  int               seen;

  // Formats, one number at a time.
  task automatic check_format();
    real x;
    e4m3 = new("e4m3fn");
    expect_code("bits", code_t'(e4m3.bits()), 8);
    // 1.3 lies between 0x3a, 1.25, and 0x3b, 1.375.
    expect_code("encode", e4m3.encode(1.3), 'h3a);
    expect_code("saturates", e4m3.encode(-1000.0), 'hfe);
    void'(numemu_sv_format_open("e4m3fn", "rup", "ieee", e4m3_up));
    void'(numemu_sv_encode(e4m3_up, 1.3, 0, code, flags));
    expect_code("rup", code, 'h3b);
    expect_code("inexact", code_t'(flags), 1);
    numemu_sv_format_close(e4m3_up);
    x = e4m3.decode('h7e);
    expect_code("decode", code_t'(x), 448);
    e4m3.close();
  endtask
  chandle e4m3_up;

  // Operations on single codes.
  task automatic check_scalars();
    fma = numemu_operation::of_formats("fma", "float16");
    expect_code("1.5 * 2 + 0.5", fma.scalar('h3e00, 'h4000, 'h3800), 'h4300);
    void'(numemu_sv_scalar(fma.handle, 'h7bff, 'h7bff, 0, code, flags));
    expect_code("overflow", code, 'h7c00);
    expect_code("its flags", code_t'(flags), 5);
    fma.close();
  endtask

  // K codes side by side; the same by fields, and as a batch of open arrays.
  task automatic check_dots();
    dot = numemu_operation::of_unit("h100.wgmma.e4m3.f32", 4);
    // 1 * 1 + 2 * 2 + 3 * 3 + 4 * 4 + 0.5
    expect_code("packed", dot.dot('h48444038, 'h48444038, 'h3f000000), 'h41f40000);
    dot.set(dot.field("a"), 'h48444038);
    dot.set(dot.field("b"), 'h38383838);
    dot.set(dot.field("c"), 'h3f000000);
    void'(dot.compute());
    expect_code("fields", dot.code(dot.field("d")), 'h41280000);
    expect_code("width", code_t'(dot.width(dot.field("a"))), 32);
    dot.get(dot.field("a"), value);
    expect_code("input", value[63:0], 'h48444038);
    foreach (a[i]) a[i] = 'h38;
    foreach (b[i]) b[i] = i < 4 ? 'h38 : 'h40;
    c = '{'h3f000000, 0};
    if (numemu_sv_dots(dot.handle, a, b, c, d) != 0) failures++;
    expect_code("first of a batch", d[0], 'h40900000);
    expect_code("second of a batch", d[1], 'h41000000);
  endtask

  // Vectors of numemu are right by its own judgement, for every record; a wrong bit is not.
  task automatic check_vectors();
    vectors = new(dot, "mixed", 500, 7);
    board = new(dot, "own");
    expect_code("size", code_t'(vectors.size()), 500);
    seen = 0;
    while (vectors.next()) begin
      code = dot.code(dot.field("d"));
      void'(board.check(VECTOR_BITS'(code)));
      seen++;
    end
    expect_code("vectors", code_t'(seen), 500);
    expect_code("matches", board.matched, 500);
    expect_code("passes", code_t'(board.report()), 1);
    vectors.close();
  endtask

  // What counts as equal.
  task automatic check_tolerance();
    verdict_e verdict;
    board = new(dot, "tolerant");
    board.most_told = 0;
    dot.set(dot.field("a"), 'h0000007f);  // NaN
    verdict = board.check('h7fc00000);
    expect_code("any NaN", code_t'(verdict), code_t'(VerdictTolerated));
    board.nan = NanPayload;
    verdict = board.check('h7fc00000);
    expect_code("this NaN", code_t'(verdict), code_t'(VerdictMismatch));
    verdict = board.check('h7fffffff);
    expect_code("the NaN", code_t'(verdict), code_t'(VerdictMatch));
    dot.set(dot.field("a"), 'h38);
    dot.set(dot.field("b"), 'h38);
    dot.set(dot.field("c"), 0);
    verdict = board.check('h3f800400);  // one unit of the register's 13 bits
    expect_code("an ulp", code_t'(verdict), code_t'(VerdictMismatch));
    board.ulps = 1;
    verdict = board.check('h3f800400);
    expect_code("an ulp allowed", code_t'(verdict), code_t'(VerdictTolerated));
    board.ulps = 0;
    board.compare_flags = 1'b1;
    verdict = board.check('h3f800000, 1);
    expect_code("flags", code_t'(verdict), code_t'(VerdictMismatch));
    verdict = board.check('h3f800000, 0);
    expect_code("right flags", code_t'(verdict), code_t'(VerdictMatch));
    expect_code("matched", board.matched, 4);
    expect_code("tolerated", board.tolerated, 2);
    expect_code("mismatched", board.mismatched, 3);
    board.most_told = 3;
    void'(board.check('h40000000));
  endtask

  // Metadata: the places of kept elements.
  task automatic check_sparse();
    sparse = numemu_operation::of_unit("sparse_dot.json");
    if (!sparse.ok()) failures++;
    expect_code("kept", code_t'(sparse.width(sparse.field("a"))), 8 * 8);
    expect_code("of", code_t'(sparse.width(sparse.field("b"))), 16 * 8);
    sparse.set(sparse.field("e"), 'h4444);  // places 0 and 1 of each group
    sparse.set(sparse.field("a"), 'h3840);  // 2, 1
    sparse.set(sparse.field("b"), 'h4448);  // 4, 3
    void'(sparse.compute());
    expect_code("2 * 4 + 1 * 3", sparse.code(sparse.field("d")), 'h4980);
    sparse.close();
  endtask

  // Each of these is an $error with numemu's message.
  task automatic check_errors();
    none = numemu_operation::of_unit("h100.wgmma.e4m4.f32");
    if (none.ok()) failures++;
    none = numemu_operation::of_unit("h100.wgmma.e4m3.f32", 512);
    if (none.ok()) failures++;
    if (succeeded(numemu_sv_dots(dot.handle, a, short_b, c, d))) failures++;
    if (numemu_sv_set(dot.handle, 99, 0) != int'(StatusUsage)) failures++;
    expect_code("no such field", code_t'(dot.field("sa") < 0), 1);
  endtask

  initial begin
    check_format();
    check_scalars();
    check_dots();
    check_vectors();
    check_tolerance();
    check_sparse();
    check_errors();
    dot.close();
    if (failures == 0) $display("PASSED with numemu %s", numemu_sv_version());
    else $display("FAILED %0d", failures);
    $finish;
  end
endmodule
