"""Multi-Object Datasets: Multi-dSprites, Objects Room, Tetrominoes and CLEVR with masks, from their TFRecord files."""
