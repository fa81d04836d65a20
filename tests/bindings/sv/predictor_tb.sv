// A monitor's transactions go through the predictor to a subscriber that compares.
module predictor_tb;
  import uvm_pkg::*;
  import numemu_pkg::*;

  class comparer extends uvm_subscriber #(numemu_item);
    int seen;
    code_t last;
    int result;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
    virtual function void write(numemu_item t);
      seen++;
      last = t.value[result][63:0];
    endfunction
  endclass

  uvm_component top;  // none
  uvm_phase phase;
  numemu_predictor predictor;
  comparer board;
  uvm_component reader;
  numemu_item item;
  int a, b, c;

  initial begin
    predictor = new("predictor", top);
    predictor.build_phase(phase);
    predictor.operation = numemu_operation::of_formats("fma", "float16");
    a = predictor.operation.field("a");
    b = predictor.operation.field("b");
    c = predictor.operation.field("c");
    board = new("board", top);
    board.result = predictor.operation.field("out");
    reader = board;
    predictor.expected_port.connect(reader);
    item = new("item");
    item.value[a] = VECTOR_BITS'(16'h3e00);  // 1.5
    item.value[b] = VECTOR_BITS'(16'h4000);  // 2
    item.value[c] = VECTOR_BITS'(16'h3800);  // 0.5
    predictor.write(item);
    if (board.seen != 1 || board.last != 64'h4300) $fatal(1, "expected 4300, 3.5, once, found %h, %0d times", board.last, board.seen);
    $display("predicted %0h", board.last);
    predictor.operation.close();
    $finish;
  end
endmodule
