"""What theory predicts: step sizes, stability, noise floors and bounds. Functions of arrays alone."""
