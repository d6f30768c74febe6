"""The claims about the papers' deep experiments; importing the modules registers them."""

from moe_theory.deep.claims import curves as curves
from moe_theory.deep.claims import drive as drive
from moe_theory.deep.claims import servers as servers
from moe_theory.deep.claims import tables as tables
