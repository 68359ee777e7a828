// A recurrent network by hand: 12 steps of h ← tanh(x · Wx + h · Wh + b), then y = h · V. ELEMENT is f32 or f64.
module @rnn {
  gpuc.variable @rnn.weight_x : tensor<5x16xELEMENT> init uniform(bound = 0.25)
  gpuc.variable @rnn.weight_h : tensor<16x16xELEMENT> init uniform(bound = 0.25)
  gpuc.variable @rnn.bias : tensor<16xELEMENT> init uniform(bound = 0.25)
  gpuc.variable @head.weight : tensor<16x1xELEMENT> init uniform(bound = 0.25)

  func.func @predict(%x: tensor<8x12x5xELEMENT> {gpuc.name = "x"}) -> (tensor<8x1xELEMENT> {gpuc.name = "y"}) {
    %wx = gpuc.read @rnn.weight_x : tensor<5x16xELEMENT> loc("rnn")
    %wh = gpuc.read @rnn.weight_h : tensor<16x16xELEMENT> loc("rnn")
    %b = gpuc.read @rnn.bias : tensor<16xELEMENT> loc("rnn")
    %xs = gpuc.transpose %x permutation [1, 0, 2] : (tensor<8x12x5xELEMENT>) -> tensor<12x8x5xELEMENT> loc("rnn")
    %h0 = gpuc.constant 0.0 : tensor<8x16xELEMENT> loc("rnn")
    %hn = gpuc.scan over(%xs) carry(%h0) captures(%wx, %wh, %b)
        : (tensor<12x8x5xELEMENT>, tensor<8x16xELEMENT>, tensor<5x16xELEMENT>, tensor<16x16xELEMENT>, tensor<16xELEMENT>)
        -> tensor<8x16xELEMENT> {
    ^bb0(%xt: tensor<8x5xELEMENT>, %h: tensor<8x16xELEMENT>, %wx_: tensor<5x16xELEMENT>, %wh_: tensor<16x16xELEMENT>,
         %b_: tensor<16xELEMENT>):
      %0 = gpuc.matmul %xt, %wx_ : (tensor<8x5xELEMENT>, tensor<5x16xELEMENT>) -> tensor<8x16xELEMENT> loc("rnn")
      %1 = gpuc.matmul %h, %wh_ : (tensor<8x16xELEMENT>, tensor<16x16xELEMENT>) -> tensor<8x16xELEMENT> loc("rnn")
      %2 = gpuc.add %0, %1 : tensor<8x16xELEMENT> loc("rnn")
      %3 = gpuc.broadcast %b_ dims [1] : tensor<16xELEMENT> to tensor<8x16xELEMENT> loc("rnn")
      %4 = gpuc.add %2, %3 : tensor<8x16xELEMENT> loc("rnn")
      %next = gpuc.tanh %4 : tensor<8x16xELEMENT> loc("rnn")
      gpuc.yield %next : tensor<8x16xELEMENT> loc("rnn")
    } loc("rnn")
    %v = gpuc.read @head.weight : tensor<16x1xELEMENT> loc("head")
    %y = gpuc.matmul %hn, %v : (tensor<8x16xELEMENT>, tensor<16x1xELEMENT>) -> tensor<8x1xELEMENT> loc("head")
    return %y : tensor<8x1xELEMENT>
  }

  func.func @loss(%x: tensor<8x12x5xELEMENT> {gpuc.name = "x"}, %y: tensor<8x1xELEMENT> {gpuc.name = "y"})
      -> (tensor<ELEMENT>, tensor<ELEMENT>) {
    %p = call @predict(%x) : (tensor<8x12x5xELEMENT>) -> tensor<8x1xELEMENT>
    %sum, %count = gpuc.mse %p, %y : (tensor<8x1xELEMENT>, tensor<8x1xELEMENT>) -> (tensor<ELEMENT>, tensor<ELEMENT>)
    return %sum, %count : tensor<ELEMENT>, tensor<ELEMENT>
  }

  gpuc.recipe {
    loss = @loss,
    batch = 8,
    optimizer = sgd(lr = 1.0e-1)
  }
}
