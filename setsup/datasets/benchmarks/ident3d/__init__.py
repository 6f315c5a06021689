"""3DIdent and Causal3DIdent: rendered objects whose position, rotation, light and colors are continuous factors."""
