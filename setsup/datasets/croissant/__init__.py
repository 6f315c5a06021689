"""Croissant metadata: datasets described in JSON-LD, for search engines, hubs and other libraries.

Convention
----------
``croissant.json`` follows Croissant 1.1 [1]_ and its RAI vocabulary 1.0 [2]_. Each factor is a field of the record set
``samples``; its levels are an enumeration ``levels/FACTOR`` with a name, a value and an order. What Croissant has no
term for, such as the kind of a factor, is an annotation of its field, with a property of :data:`.vocabulary.URN`.
Values that are unknown are null.

References
----------
.. [1] http://mlcommons.org/croissant/1.1
.. [2] http://mlcommons.org/croissant/RAI/1.0

"""
