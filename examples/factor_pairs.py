"""Ada-GVAE (Locatello et al. 2020, section 4): a VAE that learns from pairs which of its dimensions both images share.

Needs: pip install ".[torch]".
"""

import torch
from torch import nn

import setsup

shapes = setsup.load("shapes3d-procedural", where="orientation == 0 and scale == 1.25")
pairs = setsup.FactorPairSampler(shapes.factors, pairs=32, seed=0)  # 1 to 3 of 4 factors differ, in each pair others
torch.manual_seed(0)
encoder = nn.Sequential(
    *(nn.Conv2d(3, 16, 4, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 4), nn.ReLU(), nn.Flatten(), nn.Linear(512, 2 * 8))
)
decoder = nn.Sequential(
    *(nn.Linear(8, 512), nn.ReLU(), nn.Unflatten(1, (32, 4, 4)), nn.ConvTranspose2d(32, 16, 4, 4), nn.ReLU()),
    nn.ConvTranspose2d(16, 3, 4, 4),
)
optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)


def group_averaged(mean: torch.Tensor, variance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Average what two posteriors (pairs, 2, dimensions) share; and whether they do, (pairs, 1, dimensions)."""
    (m1, m2), (v1, v2) = mean.unbind(1), variance.unbind(1)
    apart = ((v1 / v2 - 1 + (m1 - m2) ** 2 / v2 + (v2 / v1).log()) / 2)[:, None]
    shared = apart < (apart.amax(2, keepdim=True) + apart.amin(2, keepdim=True)) / 2
    return *(torch.where(shared, one.mean(1, keepdim=True), one) for one in (mean, variance)), shared


for step, batch in zip(range(100), setsup.loader(shapes, pairs), strict=False):
    image = batch["image"].float() / 255  # (pairs, 2, 3, 64, 64)
    mean, log_variance = encoder(image.flatten(0, 1)).unflatten(0, (-1, 2)).chunk(2, dim=-1)
    mean, variance, shared = group_averaged(mean, log_variance.exp())
    code = mean + variance.sqrt() * torch.randn_like(mean)
    error = (decoder(code.flatten(0, 1)).unflatten(0, (-1, 2)) - image).square().sum((2, 3, 4)).mean()
    loss = error + (mean**2 + variance - variance.log() - 1).sum(-1).mean() / 2
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 33 == 0:
        changed = torch.stack(list(batch["pair_labels"].values())).sum(0).float().mean()
        print(
            f"step {step}: squared error {error:.0f}; of 8 dimensions {8 - shared.sum(-1).float().mean():.1f} differ, "
            f"of the factors {changed:.1f}"
        )
