"""Records a module's training as plain data, by torch.export: what frontend/torch/Graph.h describes.

The graph that torch.export makes is kept functional and otherwise whole: what the compiler knows as a layer stays one.
What it does not know is taken apart by PyTorch's own decompositions.
What it would drop without a word is put in or refused: backward hooks, torch.no_grad, what a buffer becomes, gradients and
state of one's own (custom_gradients.py, forward_state.py). What hangs on constants alone is computed here, by torch.

    Recorder (recorder.py)            the variables and functions of a step
      export (export.py)              the functional graph of a module with its loss (whole.py)
        capture_whole (attempts.py)   as many passes as what it has takes
          one_pass.py                 one of them
      FunctionRecorder                that graph as plain data
"""
