"""The pictures of the method pages: each function computes what its picture shows and returns how to draw it.

`draw.py` draws each in light and in dark, under the name of its function. Colours are those of the style (C0, C1, ...)
or a middle grey, so that both can be read.
"""
