"""3DIdent and Causal3DIdent: rendered objects whose position, rotation, light and colours are continuous factors."""
