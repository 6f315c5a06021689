"""Measuring how much of what one view shows another shows as well."""
