// One LSTM layer (PyTorch's gates: input, forget, cell, output) that reads 32 frames of 32 numbers and classifies the
// sequence from its last state. Variables are named and laid out as nn.LSTM's and nn.Linear's, called rnn and fc.
module @lstm {
  gpuc.variable @rnn.weight_ih_l0 : tensor<256x32xf32> init uniform(bound = 0.125) loc("rnn")
  gpuc.variable @rnn.weight_hh_l0 : tensor<256x64xf32> init uniform(bound = 0.125) loc("rnn")
  gpuc.variable @rnn.bias_ih_l0 : tensor<256xf32> init uniform(bound = 0.125) loc("rnn")
  gpuc.variable @rnn.bias_hh_l0 : tensor<256xf32> init uniform(bound = 0.125) loc("rnn")
  gpuc.variable @fc.weight : tensor<10x64xf32> init kaiming_uniform(fan_in = 64) loc("fc")
  gpuc.variable @fc.bias : tensor<10xf32> init uniform(bound = 0.125) loc("fc")

  func.func @predict(%x: tensor<?x32x32xf32> {gpuc.name = "x"}) -> (tensor<?x10xf32> {gpuc.name = "logits"}) {
    %zero = gpuc.constant dense<0.0> : tensor<f32> loc("rnn")
    %start = gpuc.broadcast %zero dims [] : tensor<f32> to tensor<?x64xf32> loc("rnn")
    %wi = gpuc.read @rnn.weight_ih_l0 : tensor<256x32xf32> loc("rnn")
    %wh = gpuc.read @rnn.weight_hh_l0 : tensor<256x64xf32> loc("rnn")
    %bi = gpuc.read @rnn.bias_ih_l0 : tensor<256xf32> loc("rnn")
    %bh = gpuc.read @rnn.bias_hh_l0 : tensor<256xf32> loc("rnn")
    %b = gpuc.add %bi, %bh : tensor<256xf32> loc("rnn")
    %states:2 = gpuc.scan over(%x) carry(%start, %start) captures(%wi, %wh, %b) batch_first
        : (tensor<?x32x32xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<256x32xf32>, tensor<256x64xf32>, tensor<256xf32>)
       -> (tensor<?x64xf32>, tensor<?x64xf32>) {
    ^bb0(%frame: tensor<?x32xf32>, %h: tensor<?x64xf32>, %c: tensor<?x64xf32>, %u: tensor<256x32xf32>, %v: tensor<256x64xf32>, %d: tensor<256xf32>):
      %from_frame = gpuc.matmul %frame, transpose %u : (tensor<?x32xf32>, tensor<256x32xf32>) -> tensor<?x256xf32> loc("rnn")
      %from_state = gpuc.matmul %h, transpose %v : (tensor<?x64xf32>, tensor<256x64xf32>) -> tensor<?x256xf32> loc("rnn")
      %bias = gpuc.broadcast %d dims [1] : tensor<256xf32> to tensor<?x256xf32> loc("rnn")
      %biased = gpuc.add %from_frame, %bias : tensor<?x256xf32> loc("rnn")
      %gates = gpuc.add %biased, %from_state : tensor<?x256xf32> loc("rnn")
      %i_in = gpuc.slice %gates starts [0, 0] limits [-1, 64] strides [1, 1] : (tensor<?x256xf32>) -> tensor<?x64xf32> loc("rnn")
      %f_in = gpuc.slice %gates starts [0, 64] limits [-1, 128] strides [1, 1] : (tensor<?x256xf32>) -> tensor<?x64xf32> loc("rnn")
      %g_in = gpuc.slice %gates starts [0, 128] limits [-1, 192] strides [1, 1] : (tensor<?x256xf32>) -> tensor<?x64xf32> loc("rnn")
      %o_in = gpuc.slice %gates starts [0, 192] limits [-1, 256] strides [1, 1] : (tensor<?x256xf32>) -> tensor<?x64xf32> loc("rnn")
      %i = gpuc.sigmoid %i_in : tensor<?x64xf32> loc("rnn")
      %f = gpuc.sigmoid %f_in : tensor<?x64xf32> loc("rnn")
      %g = gpuc.tanh %g_in : tensor<?x64xf32> loc("rnn")
      %o = gpuc.sigmoid %o_in : tensor<?x64xf32> loc("rnn")
      %kept = gpuc.mul %f, %c : tensor<?x64xf32> loc("rnn")
      %added = gpuc.mul %i, %g : tensor<?x64xf32> loc("rnn")
      %next_c = gpuc.add %kept, %added : tensor<?x64xf32> loc("rnn")
      %squashed = gpuc.tanh %next_c : tensor<?x64xf32> loc("rnn")
      %next_h = gpuc.mul %o, %squashed : tensor<?x64xf32> loc("rnn")
      gpuc.yield %next_h, %next_c : tensor<?x64xf32>, tensor<?x64xf32> loc("rnn")
    } loc("rnn")
    %w = gpuc.read @fc.weight : tensor<10x64xf32> loc("fc")
    %bias = gpuc.read @fc.bias : tensor<10xf32> loc("fc")
    %product = gpuc.matmul %states#0, transpose %w : (tensor<?x64xf32>, tensor<10x64xf32>) -> tensor<?x10xf32> loc("fc")
    %rows = gpuc.broadcast %bias dims [1] : tensor<10xf32> to tensor<?x10xf32> loc("fc")
    %logits = gpuc.add %product, %rows : tensor<?x10xf32> loc("fc")
    return %logits : tensor<?x10xf32>
  }

  func.func @loss(%x: tensor<?x32x32xf32> {gpuc.name = "x"}, %labels: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 10 : i64})
      -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.name = "count"}) {
    %logits = call @predict(%x) : (tensor<?x32x32xf32>) -> tensor<?x10xf32>
    %sum, %count = gpuc.cross_entropy %logits, %labels : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>) loc("loss")
    return %sum, %count : tensor<f32>, tensor<f32>
  }

  gpuc.recipe {
    loss = @loss,
    batch = 16,
    optimizer = sgd(lr = 0.01)
  }
}
