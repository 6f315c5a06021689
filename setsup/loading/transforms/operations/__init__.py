"""What can be done to images: geometric operations give matrices, photometric ones change colors.

Each is a frozen dataclass whose numbers come from :class:`setsup.loading.transforms.slots.Slots`.
"""
