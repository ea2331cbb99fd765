"""How tables, figures and pages look, whatever they show."""
