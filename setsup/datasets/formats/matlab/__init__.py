"""MATLAB files, version 5 and 7.3."""
