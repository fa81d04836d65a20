// sparse_dot against its unit, with the vectors of a file: numemu vectors --unit sparse_dot.json --file-format sv --out sparse_dot
module sparse_dot_tb;
  import sparse_dot_pkg::*;
  import numemu_pkg::*;
  import sparse_dot_vectors_pkg::class_coverage;
  import sparse_dot_vectors_pkg::class_e;

  parameter int Fault = int'(FaultNone);

  e4m3_t [Kept-1:0] a;
  logic [Kept-1:0][1:0] place;
  e4m3_t [sparse_dot_pkg::K-1:0] b;
  float16_t c, d;

  sparse_dot #(.Fault(Fault)) u_dut (
    .a_i    (a),
    .place_i(place),
    .b_i    (b),
    .c_i    (c),
    .d_o    (d)
  );

  numemu_operation  unit;
  numemu_scoreboard scoreboard;
  class_coverage    coverage;
  string            prefix = "sparse_dot_vectors";
  int               count = sparse_dot_vectors_pkg::N;

  initial begin
    void'($value$plusargs("prefix=%s", prefix));
    void'($value$plusargs("vectors=%d", count));
    sparse_dot_vectors_pkg::load(prefix);
    unit = new(sparse_dot_vectors_pkg::VECTORS);
    if (!unit.ok()) $fatal(1, "no unit");
    scoreboard = new(unit, "sparse_dot");
    coverage = new;

    for (int i = 0; i < count; i++) begin
      a = sparse_dot_vectors_pkg::a_mem[i];
      b = sparse_dot_vectors_pkg::b_mem[i];
      place = sparse_dot_vectors_pkg::e_mem[i];
      c = sparse_dot_vectors_pkg::c_mem[i];
      #1;
      coverage.sample(class_e'(sparse_dot_vectors_pkg::class_mem[i]));
      unit.set(unit.field("a"), VECTOR_BITS'(a));
      unit.set(unit.field("b"), VECTOR_BITS'(b));
      unit.set(unit.field("e"), VECTOR_BITS'(place));
      unit.set(unit.field("c"), VECTOR_BITS'(c));
      void'(scoreboard.check(VECTOR_BITS'(d)));
    end

    $display("classes covered: %0d of %0d", coverage.covered(), sparse_dot_vectors_pkg::CLASSES);
    if (scoreboard.report()) $display("PASSED");
    else $display("FAILED");
    unit.close();
    $finish;
  end

endmodule
