"""The resume matrix: runs of several processes are killed and resumed on another number of them.

``plan`` lists the cells, ``run`` starts, kills and resumes the processes of a cell, ``count`` compares what they
trained on with what a run of one process would have trained on, ``ways`` and ``peers`` are the training loops.
"""
