// The classes of UVM that numemu_uvm.svh uses, in 40 lines: names and order of arguments are those of UVM 1.2, but for connect().
package uvm_pkg;
  class uvm_object;
    string m_name;
    function new(string name = "");
      m_name = name;
    endfunction
  endclass

  class uvm_sequence_item extends uvm_object;
    function new(string name = "");
      super.new(name);
    endfunction
  endclass

  class uvm_phase;
  endclass

  class uvm_component extends uvm_object;
    function new(string name, uvm_component parent);
      super.new(name);
    endfunction
    virtual function void build_phase(uvm_phase phase);
    endfunction
    virtual function void deliver(uvm_object item);
    endfunction
  endclass

  virtual class uvm_subscriber #(type T = uvm_sequence_item) extends uvm_component;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
    pure virtual function void write(T t);
    virtual function void deliver(uvm_object item);
      T t;
      if ($cast(t, item)) write(t);
    endfunction
  endclass

  class uvm_analysis_port #(type T = uvm_sequence_item) extends uvm_component;
    local uvm_component readers[$];
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
    function void connect(uvm_component reader);
      readers.push_back(reader);
    endfunction
    function void write(T t);
      uvm_object item;
      void'($cast(item, t));
      foreach (readers[i]) readers[i].deliver(item);
    endfunction
  endclass
endpackage
