"""The experts' networks: from images (n, height, width, channels) to outputs before the sigmoid or softmax.

`NETWORKS` has them by name:
- "five-layer": of the MNIST experiment, with 16 and 32 channels and 128 and 64 units (widths are ours).
- "five-layer-small": 8 and 16 channels, 32 and 16 units, for digits of 8 x 8.
- "resnet18": the standard one for 32 x 32 (64 to 512 channels, two blocks each, BatchNorm); its stem halves 64 x 64.
- "resnet18-small": for 8 x 8, a ResNet of 6 layers: 8 and 16 channels, one block each, GroupNorm of 4 groups.
- "mlp": one hidden layer of 32 units.
"""

from moe_theory.deep.networks.architectures import five_layer, mlp, resnet
from moe_theory.deep.networks.layers import batches, groups
from moe_theory.deep.networks.weights import Network as Network
from moe_theory.deep.networks.weights import Weights as Weights
from moe_theory.deep.networks.weights import expert as expert
from moe_theory.deep.networks.weights import num_experts as num_experts
from moe_theory.deep.networks.weights import num_parameters as num_parameters
from moe_theory.deep.networks.weights import squared_distance as squared_distance
from moe_theory.deep.networks.weights import stacked as stacked
from moe_theory.deep.networks.weights import with_expert as with_expert

# The networks by name, as above.
NETWORKS: dict[str, Network] = {
    network.name: network
    for network in (
        five_layer("five-layer", (16, 32), (128, 64)),
        five_layer("five-layer-small", (8, 16), (32, 16)),
        resnet("resnet18", (64, 128, 256, 512), 2, batches()),
        resnet("resnet18-small", (8, 16), 1, groups(4)),
        mlp("mlp", (32,)),
    )
}
