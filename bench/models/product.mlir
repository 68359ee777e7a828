// A product of 1024×1024×1024: what `scripts/bench --real` takes for the rate that this machine can have, in the same rounds.
module @product {
  gpuc.variable @weight : tensor<1024x1024xf32> init uniform(bound = 0.03125)

  func.func @predict(%x: tensor<?x1024xf32> {gpuc.name = "x"}) -> (tensor<?x1024xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @weight : tensor<1024x1024xf32>
    %y = gpuc.matmul %x, %w : (tensor<?x1024xf32>, tensor<1024x1024xf32>) -> tensor<?x1024xf32>
    return %y : tensor<?x1024xf32>
  }
}
