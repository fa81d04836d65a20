// fp8_mac against its unit: numemu makes the vectors and judges the results.
//
// +vectors=N  how many; +unit=FILE  the description, fp8_mac.json
module fp8_mac_tb;
  import fp8_mac_pkg::*;
  import numemu_pkg::*;

  parameter int Fault = int'(FaultNone);
  localparam int K = 4 * Lanes;  // four cycles a sum

  logic clk = 1'b0, rst_n = 1'b0, load_c = 1'b0, valid = 1'b0;
  logic [31:0] c, acc;
  e4m3_t [K-1:0] a, b;
  int unsigned step;

  fp8_mac #(.Fault(Fault)) u_dut (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .load_i (load_c),
    .c_i    (c),
    .valid_i(valid),
    .a_i    (a[Lanes*step+:Lanes]),
    .b_i    (b[Lanes*step+:Lanes]),
    .acc_o  (acc)
  );

  numemu_operation  unit;
  numemu_vectors    vectors;
  numemu_scoreboard scoreboard;
  string            description = "fp8_mac.json";
  int               count = 100000;
  // verilator lint_off UNDRIVEN
  vector_t          operand;
  // verilator lint_on UNDRIVEN

  task automatic cycle();
    #1 clk = 1'b1;
    #1 clk = 1'b0;
  endtask

  initial begin
    void'($value$plusargs("unit=%s", description));
    void'($value$plusargs("vectors=%d", count));
    unit = numemu_operation::of_unit(description, K);
    if (!unit.ok()) $fatal(1, "no unit");
    vectors = new(unit, "mixed", longint'(count));
    scoreboard = new(unit, "fp8_mac");
    cycle();
    rst_n = 1'b1;

    while (vectors.next()) begin
      unit.get(unit.field("a"), operand);
      a = operand[8*K-1:0];
      unit.get(unit.field("b"), operand);
      b = operand[8*K-1:0];
      c = 32'(unit.code(unit.field("c")));
      load_c = 1'b1;
      cycle();
      load_c = 1'b0;
      valid = 1'b1;
      for (step = 0; step < K / Lanes; step++) cycle();
      valid = 1'b0;
      step = 0;
      void'(scoreboard.check(VECTOR_BITS'(acc)));
    end

    if (scoreboard.report()) $display("PASSED");
    else $display("FAILED");
    vectors.close();
    unit.close();
    $finish;
  end

endmodule
