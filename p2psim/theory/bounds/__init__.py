"""What the papers promise of the fitness: bounds as printed, and bounds that hold."""
