"""Who wakes, who hears whom, and when: events are made here. Knows nothing of models, gradients or ε."""
