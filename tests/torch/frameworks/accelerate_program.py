"""A typical Accelerate program: a linear regression on two processes."""

import torch
from accelerate import Accelerator, DistributedType
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def main():
    # Accelerate creates groups only for the backends in its list, but accepts an existing group.
    torch.distributed.init_process_group("hearth")
    accelerator = Accelerator(cpu=True)
    set_seed(1)
    inputs = torch.randn(256, 4)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]])
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(20):
        for batch, wanted in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(batch), wanted)
            accelerator.backward(loss)
            optimizer.step()
    error = accelerator.gather(loss.detach().reshape(1)).mean().item()
    weights = accelerator.unwrap_model(model).weight.detach()
    everybodys = accelerator.gather(weights)
    accelerator.wait_for_everyone()
    backend = torch.distributed.get_backend()
    rank = f"rank {accelerator.process_index} of {accelerator.num_processes}"
    print(f"{rank} by {backend}: error {error:.6f}")
    assert accelerator.distributed_type == DistributedType.MULTI_CPU
    assert backend == "hearth"
    assert torch.equal(everybodys[0], everybodys[1])
    assert error < 1e-3


if __name__ == "__main__":
    main()
