"""Offscreen renderers that implement the renderer protocol of ``setsup.scenes``; found through entry points."""
