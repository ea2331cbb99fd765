"""How tables, figures and pages look, whatever they show."""

from benchmark.display.page import PageTable, Section
from benchmark.display.tables import Group
