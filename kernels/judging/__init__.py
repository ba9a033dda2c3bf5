"""What judges of programs call: rules over edges, and what they find anew (pipeline/judging/)."""
