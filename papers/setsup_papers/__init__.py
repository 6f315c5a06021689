"""The papers that setsup reproduces, a folder each: losses, networks, methods, settings, presets, reports and data.

Each is offered under the entry-point group ``setsup.experiments``, as another package offers a paper of its own.
"""
