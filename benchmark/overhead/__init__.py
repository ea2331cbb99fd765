"""What each detector costs in time, memory and disk."""
